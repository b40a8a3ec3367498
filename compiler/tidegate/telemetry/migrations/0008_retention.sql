-- Every table of telemetry forgets. By the time of closing, not the window's own: windows of an archive are old when
-- they are made.
ALTER TABLE prefix_windows
    ADD COLUMN IF NOT EXISTS closed_at DateTime('UTC') DEFAULT now() CODEC(Delta, ZSTD(1));

ALTER TABLE prefix_windows
    MODIFY TTL closed_at + INTERVAL 30 DAY;

ALTER TABLE prefix_windows
    MODIFY SETTING ttl_only_drop_parts = 1;

-- Longer than the rows that it speaks of: a window that is forgotten as closed must have none left.
ALTER TABLE closed_windows
    MODIFY TTL closed_at + INTERVAL 45 DAY;

ALTER TABLE ingested_blocks
    MODIFY TTL ingested_at + INTERVAL 400 DAY;

-- More than the inserts of the three days that a row lives, at one every five seconds: a token is forgotten only when
-- the rows that it stands for are gone.
ALTER TABLE socket_samples
    MODIFY SETTING non_replicated_deduplication_window = 60000;

ALTER TABLE transfers
    MODIFY SETTING non_replicated_deduplication_window = 60000;

ALTER TABLE host_health
    MODIFY SETTING non_replicated_deduplication_window = 60000;
