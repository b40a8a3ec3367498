-- Which rows of each host's spool have come by a topic, so that what a host sends again is not stored again; the latest
-- entry of a spool counts. Who is forgotten can repeat nothing that would be admitted: a row may be 30 days old, its
-- clock a day ahead.
CREATE TABLE IF NOT EXISTS kafka_spools
(
    topic_id String,
    spool FixedString(32),
    runs Array(Tuple(UInt64, UInt64)),
    newest_ns UInt64,
    seen DateTime('UTC')
)
ENGINE = ReplacingMergeTree
ORDER BY (topic_id, spool)
TTL seen + INTERVAL 33 DAY;
