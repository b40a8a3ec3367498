-- One row per socket and poll; a column per field of schemas/sockets.proto, with the same name and unit. Times are
-- in microseconds, rates in bytes per second, windows in segments; zero is what the kernel did not report.
CREATE TABLE IF NOT EXISTS socket_samples
(
    schema_version UInt32 CODEC(T64, ZSTD(1)),
    observed_at DateTime64(9, 'UTC') CODEC(Delta, ZSTD(1)),
    pop LowCardinality(String),
    host LowCardinality(String),
    traffic_class Enum8('unknown' = 0, 'client' = 1, 'pop_to_pop' = 2, 'intra_pop' = 3, 'origin' = 4),

    cookie UInt64 CODEC(ZSTD(1)),
    local_address IPv6 CODEC(ZSTD(1)),
    remote_address IPv6 CODEC(ZSTD(1)),
    local_prefix_length UInt8,
    remote_prefix_length UInt8,
    local_port UInt32 CODEC(T64, ZSTD(1)),
    remote_port UInt32 CODEC(T64, ZSTD(1)),
    state UInt32 CODEC(T64, ZSTD(1)),
    timer UInt32 CODEC(T64, ZSTD(1)),
    uid UInt32 CODEC(T64, ZSTD(1)),
    inode UInt32 CODEC(T64, ZSTD(1)),
    receive_queue UInt32 CODEC(T64, ZSTD(1)),
    send_queue UInt32 CODEC(T64, ZSTD(1)),

    congestion_control LowCardinality(String),

    ca_state UInt32 CODEC(T64, ZSTD(1)),
    retransmits UInt32 CODEC(T64, ZSTD(1)),
    send_wscale UInt32 CODEC(T64, ZSTD(1)),
    receive_wscale UInt32 CODEC(T64, ZSTD(1)),
    delivery_rate_app_limited UInt32 CODEC(T64, ZSTD(1)),
    rto_us UInt32 CODEC(T64, ZSTD(1)),
    snd_mss UInt32 CODEC(T64, ZSTD(1)),
    unacked UInt32 CODEC(T64, ZSTD(1)),
    lost UInt32 CODEC(T64, ZSTD(1)),
    retrans UInt32 CODEC(T64, ZSTD(1)),
    pmtu UInt32 CODEC(T64, ZSTD(1)),
    rtt_us UInt32 CODEC(T64, ZSTD(1)),
    rttvar_us UInt32 CODEC(T64, ZSTD(1)),
    snd_ssthresh UInt32 CODEC(T64, ZSTD(1)),
    snd_cwnd UInt32 CODEC(T64, ZSTD(1)),
    reordering UInt32 CODEC(T64, ZSTD(1)),
    total_retrans UInt32 CODEC(T64, ZSTD(1)),
    min_rtt_us UInt32 CODEC(T64, ZSTD(1)),
    segs_out UInt32 CODEC(T64, ZSTD(1)),
    segs_in UInt32 CODEC(T64, ZSTD(1)),
    data_segs_out UInt32 CODEC(T64, ZSTD(1)),
    data_segs_in UInt32 CODEC(T64, ZSTD(1)),
    notsent_bytes UInt32 CODEC(T64, ZSTD(1)),
    delivered UInt32 CODEC(T64, ZSTD(1)),
    delivered_ce UInt32 CODEC(T64, ZSTD(1)),
    snd_wnd UInt32 CODEC(T64, ZSTD(1)),
    pacing_rate UInt64 CODEC(T64, ZSTD(1)),
    max_pacing_rate UInt64 CODEC(T64, ZSTD(1)),
    delivery_rate UInt64 CODEC(T64, ZSTD(1)),
    bytes_acked UInt64 CODEC(T64, ZSTD(1)),
    bytes_received UInt64 CODEC(T64, ZSTD(1)),
    bytes_sent UInt64 CODEC(T64, ZSTD(1)),
    bytes_retrans UInt64 CODEC(T64, ZSTD(1)),
    busy_time_us UInt64 CODEC(T64, ZSTD(1)),
    rwnd_limited_us UInt64 CODEC(T64, ZSTD(1)),
    sndbuf_limited_us UInt64 CODEC(T64, ZSTD(1)),

    bbr_bw UInt64 CODEC(T64, ZSTD(1)),
    bbr_min_rtt_us UInt32 CODEC(T64, ZSTD(1)),
    bbr_pacing_gain UInt32 CODEC(T64, ZSTD(1)),
    bbr_cwnd_gain UInt32 CODEC(T64, ZSTD(1)),

    received_at DateTime('UTC') DEFAULT now() CODEC(Delta, ZSTD(1))
)
ENGINE = MergeTree
PARTITION BY toDate(observed_at)
ORDER BY (pop, remote_address, observed_at, cookie)
-- By the time of arrival: telemetry of an archive is old when it comes.
TTL received_at + INTERVAL 3 DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000;

-- Which blocks of which files are in socket_samples, so that loading a file again adds nothing. A row is written
-- after its block; a crash between the two is covered by the block's deduplication token.
CREATE TABLE IF NOT EXISTS ingested_blocks
(
    token FixedString(64),
    file String,
    added UInt64,
    ingested_at DateTime('UTC') DEFAULT now()
)
ENGINE = ReplacingMergeTree(ingested_at)
ORDER BY token;
