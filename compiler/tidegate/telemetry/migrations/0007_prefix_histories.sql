-- One number for the rows of a prefix in a POP and view: a set of numbers is looked up five times as fast as one of keys.
-- Two prefixes may share it, so selection counts the rows that it finds. Times without DoubleDelta are read twice as fast.
ALTER TABLE prefix_windows
    ADD COLUMN IF NOT EXISTS series UInt64 MATERIALIZED cityHash64(view, pop, prefix, prefix_length) CODEC(ZSTD(1)),
    MODIFY COLUMN window_start DateTime('UTC') CODEC(ZSTD(1));

-- What the 128 windows up to and with `window_start` hold of each prefix that was observed in one of them: a bit a window,
-- bit 127 the latest. Made from prefix_windows, and again wherever it is not there; a partition is one history.
CREATE TABLE IF NOT EXISTS prefix_histories
(
    view FixedString(16),
    window_start DateTime('UTC'),
    pop LowCardinality(String),
    prefix IPv6 CODEC(ZSTD(1)),
    prefix_length UInt8,
    observed UInt128 CODEC(ZSTD(1)),
    member UInt128 CODEC(ZSTD(1)),
    series UInt64 MATERIALIZED cityHash64(view, pop, prefix, prefix_length),
    made_at DateTime('UTC') DEFAULT now() CODEC(Delta, ZSTD(1))
)
ENGINE = MergeTree
PARTITION BY (view, window_start)
ORDER BY (view, window_start, pop, prefix, prefix_length)
TTL made_at + INTERVAL 1 DAY
SETTINGS ttl_only_drop_parts = 1;

-- Which histories are whole, and of how many rows. A row here is written last; a history that lost rows since is not whole.
CREATE TABLE IF NOT EXISTS whole_histories
(
    view FixedString(16),
    window_start DateTime('UTC'),
    rows UInt64,
    made_at DateTime('UTC') DEFAULT now()
)
ENGINE = MergeTree
ORDER BY (view, window_start)
TTL made_at + INTERVAL 1 DAY;
