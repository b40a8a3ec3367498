-- One row per prefix and closed window. `view` is the digest of the clauses that shape a window (measure, from,
-- step, rank, samples): a policy that changes one of them closes windows of its own.
CREATE TABLE IF NOT EXISTS prefix_windows
(
    view FixedString(16),
    pop LowCardinality(String),
    prefix IPv6,
    prefix_length UInt8,
    window_start DateTime('UTC') CODEC(DoubleDelta, ZSTD(1)),
    samples UInt32 CODEC(T64, ZSTD(1)),
    value UInt64 CODEC(T64, ZSTD(1)),
    threshold UInt64 CODEC(T64, ZSTD(1)),
    member UInt8 CODEC(T64, ZSTD(1)),
    delivery_rate UInt64 CODEC(T64, ZSTD(1)),
    min_rtt UInt32 CODEC(T64, ZSTD(1)),
    rtt UInt32 CODEC(T64, ZSTD(1)),
    cwnd UInt32 CODEC(T64, ZSTD(1)),
    retransmitted_segments UInt64 CODEC(T64, ZSTD(1)),
    data_segments UInt64 CODEC(T64, ZSTD(1))
)
ENGINE = MergeTree
PARTITION BY toDate(window_start)
ORDER BY (view, pop, prefix, prefix_length, window_start);

-- Which windows are closed. A row here is written last, so that a window closed halfway is closed again.
CREATE TABLE IF NOT EXISTS closed_windows
(
    view FixedString(16),
    window_start DateTime('UTC'),
    closed_at DateTime('UTC') DEFAULT now()
)
ENGINE = ReplacingMergeTree(closed_at)
ORDER BY (view, window_start);
