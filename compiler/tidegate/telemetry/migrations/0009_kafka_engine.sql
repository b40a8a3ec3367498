-- Messages that the Kafka engine could not read, as far as one needs to see them; docs/clickhouse.md says who fills it.
CREATE TABLE IF NOT EXISTS kafka_damaged
(
    received_at DateTime('UTC') DEFAULT now() CODEC(Delta, ZSTD(1)),
    topic LowCardinality(String),
    partition UInt64 CODEC(T64, ZSTD(1)),
    offset UInt64 CODEC(Delta, ZSTD(1)),
    error String CODEC(ZSTD(1)),
    bytes UInt64 CODEC(T64, ZSTD(1)),
    head String CODEC(ZSTD(1))
)
ENGINE = MergeTree
PARTITION BY toDate(received_at)
ORDER BY (topic, partition, offset)
TTL received_at + INTERVAL 7 DAY
SETTINGS ttl_only_drop_parts = 1;

-- How many rows that the Kafka engine read were not admitted, an hour and reason.
CREATE TABLE IF NOT EXISTS kafka_left_out
(
    hour DateTime('UTC') CODEC(Delta, ZSTD(1)),
    topic LowCardinality(String),
    reason LowCardinality(String),
    rows UInt64 CODEC(T64, ZSTD(1))
)
ENGINE = SummingMergeTree(rows)
PARTITION BY toDate(hour)
ORDER BY (hour, topic, reason)
TTL hour + INTERVAL 30 DAY
SETTINGS ttl_only_drop_parts = 1;
