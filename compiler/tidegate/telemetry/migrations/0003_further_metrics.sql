-- One row per finished transfer, as the server's access log has it. `remote_address` as in socket_samples.
CREATE TABLE IF NOT EXISTS transfers
(
    finished_at DateTime64(9, 'UTC') CODEC(Delta, ZSTD(1)),
    pop LowCardinality(String),
    host LowCardinality(String),
    remote_address IPv6 CODEC(ZSTD(1)),
    remote_prefix_length UInt8,
    bytes UInt64 CODEC(T64, ZSTD(1)),
    duration_us UInt64 CODEC(T64, ZSTD(1)),
    congestion_control LowCardinality(String),
    received_at DateTime('UTC') DEFAULT now() CODEC(Delta, ZSTD(1))
)
ENGINE = MergeTree
PARTITION BY toDate(finished_at)
ORDER BY (pop, remote_address, finished_at)
TTL received_at + INTERVAL 3 DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000;

-- One row per host and interval: for how long of `observed_us` some task waited for a CPU (Linux, /proc/pressure/cpu).
CREATE TABLE IF NOT EXISTS host_health
(
    observed_at DateTime64(9, 'UTC') CODEC(Delta, ZSTD(1)),
    pop LowCardinality(String),
    host LowCardinality(String),
    cpu_stalled_us UInt64 CODEC(T64, ZSTD(1)),
    observed_us UInt64 CODEC(T64, ZSTD(1)),
    received_at DateTime('UTC') DEFAULT now() CODEC(Delta, ZSTD(1))
)
ENGINE = MergeTree
PARTITION BY toDate(observed_at)
ORDER BY (pop, host, observed_at)
TTL received_at + INTERVAL 3 DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000;

-- Only windows of a policy that asks for a metric have its value; zero is no value, and zeros cost next to nothing.
ALTER TABLE prefix_windows
    ADD COLUMN IF NOT EXISTS pacing_rate UInt64 CODEC(T64, ZSTD(1)),
    ADD COLUMN IF NOT EXISTS goodput UInt64 CODEC(T64, ZSTD(1)),
    ADD COLUMN IF NOT EXISTS rttvar UInt32 CODEC(T64, ZSTD(1)),
    ADD COLUMN IF NOT EXISTS inflight UInt32 CODEC(T64, ZSTD(1)),
    ADD COLUMN IF NOT EXISTS ce_segments UInt64 CODEC(T64, ZSTD(1)),
    ADD COLUMN IF NOT EXISTS delivered_segments UInt64 CODEC(T64, ZSTD(1)),
    ADD COLUMN IF NOT EXISTS rwnd_limited UInt64 CODEC(T64, ZSTD(1)),
    ADD COLUMN IF NOT EXISTS sndbuf_limited UInt64 CODEC(T64, ZSTD(1)),
    ADD COLUMN IF NOT EXISTS busy_time UInt64 CODEC(T64, ZSTD(1)),
    ADD COLUMN IF NOT EXISTS cpu_stalled UInt64 CODEC(T64, ZSTD(1)),
    ADD COLUMN IF NOT EXISTS cpu_observed UInt64 CODEC(T64, ZSTD(1));
