-- Of a prefix that was a member often, its history holds what its windows measured, oldest first: as many values as windows
-- were observed, or none. So a selection reads one row a prefix. Only columns that the view's windows have are filled.
ALTER TABLE prefix_histories
    ADD COLUMN IF NOT EXISTS delivery_rate Array(UInt64) CODEC(T64, LZ4),
    ADD COLUMN IF NOT EXISTS rtt Array(UInt32) CODEC(T64, LZ4),
    ADD COLUMN IF NOT EXISTS cwnd Array(UInt32) CODEC(T64, LZ4),
    ADD COLUMN IF NOT EXISTS min_rtt Array(UInt32) CODEC(T64, LZ4),
    ADD COLUMN IF NOT EXISTS retransmitted_segments Array(UInt64) CODEC(T64, LZ4),
    ADD COLUMN IF NOT EXISTS data_segments Array(UInt64) CODEC(T64, LZ4),
    ADD COLUMN IF NOT EXISTS pacing_rate Array(UInt64) CODEC(T64, LZ4),
    ADD COLUMN IF NOT EXISTS goodput Array(UInt64) CODEC(T64, LZ4),
    ADD COLUMN IF NOT EXISTS rttvar Array(UInt32) CODEC(T64, LZ4),
    ADD COLUMN IF NOT EXISTS inflight Array(UInt32) CODEC(T64, LZ4),
    ADD COLUMN IF NOT EXISTS ce_segments Array(UInt64) CODEC(T64, LZ4),
    ADD COLUMN IF NOT EXISTS delivered_segments Array(UInt64) CODEC(T64, LZ4),
    ADD COLUMN IF NOT EXISTS rwnd_limited Array(UInt64) CODEC(T64, LZ4),
    ADD COLUMN IF NOT EXISTS sndbuf_limited Array(UInt64) CODEC(T64, LZ4),
    ADD COLUMN IF NOT EXISTS busy_time Array(UInt64) CODEC(T64, LZ4),
    ADD COLUMN IF NOT EXISTS cpu_stalled Array(UInt64) CODEC(T64, LZ4),
    ADD COLUMN IF NOT EXISTS cpu_observed Array(UInt64) CODEC(T64, LZ4),
    ADD COLUMN IF NOT EXISTS bbr_starved Array(UInt64) CODEC(T64, LZ4),
    ADD COLUMN IF NOT EXISTS bbr_samples Array(UInt64) CODEC(T64, LZ4);

-- By these numbers selection found the windows of a prefix; it reads them by the table's key now, and of few prefixes.
ALTER TABLE prefix_histories
    DROP COLUMN IF EXISTS series;

ALTER TABLE prefix_windows
    DROP COLUMN IF EXISTS series;
