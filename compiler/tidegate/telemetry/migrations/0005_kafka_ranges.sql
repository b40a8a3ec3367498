-- How far each partition of a topic is read: its latest range of offsets, one row a partition. A range is claimed
-- (done = 0) before its rows are inserted, so that after a crash the same rows go in again under the same token.
CREATE TABLE IF NOT EXISTS kafka_ranges
(
    topic_id String,
    topic String,
    partition Int32,
    first Int64,
    next Int64,
    done UInt8,
    token FixedString(64),
    version UInt64 MATERIALIZED toUInt64(next) * 2 + done,
    changed_at DateTime('UTC') DEFAULT now()
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (topic_id, partition);
