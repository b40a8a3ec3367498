-- All of schemas/hosts.proto; of it, `observed_us` stays the time that cpu_stalled_us is of: zero without PSI.
ALTER TABLE host_health
    ADD COLUMN IF NOT EXISTS interval_us UInt64 CODEC(T64, ZSTD(1)) AFTER observed_us,
    ADD COLUMN IF NOT EXISTS measured UInt8 CODEC(T64, ZSTD(1)) AFTER interval_us,
    ADD COLUMN IF NOT EXISTS cpus UInt32 CODEC(T64, ZSTD(1)) AFTER measured,
    ADD COLUMN IF NOT EXISTS cpu_stalled_avg10 UInt32 CODEC(T64, ZSTD(1)) AFTER cpus,
    ADD COLUMN IF NOT EXISTS cpu_stalled_avg60 UInt32 CODEC(T64, ZSTD(1)) AFTER cpu_stalled_avg10,
    ADD COLUMN IF NOT EXISTS cpu_stalled_avg300 UInt32 CODEC(T64, ZSTD(1)) AFTER cpu_stalled_avg60,
    ADD COLUMN IF NOT EXISTS cpu_time_us UInt64 CODEC(T64, ZSTD(1)) AFTER cpu_stalled_avg300,
    ADD COLUMN IF NOT EXISTS idle_us UInt64 CODEC(T64, ZSTD(1)) AFTER cpu_time_us,
    ADD COLUMN IF NOT EXISTS steal_us UInt64 CODEC(T64, ZSTD(1)) AFTER idle_us,
    ADD COLUMN IF NOT EXISTS irq_us UInt64 CODEC(T64, ZSTD(1)) AFTER steal_us,
    ADD COLUMN IF NOT EXISTS softirq_us UInt64 CODEC(T64, ZSTD(1)) AFTER irq_us,
    ADD COLUMN IF NOT EXISTS run_delay_us UInt64 CODEC(T64, ZSTD(1)) AFTER softirq_us;

-- All of schemas/transfers.proto. (host, finished_at, connection, connection_requests) name a transfer.
ALTER TABLE transfers
    ADD COLUMN IF NOT EXISTS traffic_class Enum8('unknown' = 0, 'client' = 1, 'pop_to_pop' = 2, 'intra_pop' = 3, 'origin' = 4) AFTER host,
    ADD COLUMN IF NOT EXISTS local_port UInt32 CODEC(T64, ZSTD(1)) AFTER remote_prefix_length,
    ADD COLUMN IF NOT EXISTS connection UInt64 CODEC(T64, ZSTD(1)) AFTER local_port,
    ADD COLUMN IF NOT EXISTS connection_requests UInt32 CODEC(T64, ZSTD(1)) AFTER connection,
    ADD COLUMN IF NOT EXISTS status UInt16 CODEC(T64, ZSTD(1)) AFTER connection_requests,
    ADD COLUMN IF NOT EXISTS rtt_us UInt32 CODEC(T64, ZSTD(1)) AFTER congestion_control,
    ADD COLUMN IF NOT EXISTS rttvar_us UInt32 CODEC(T64, ZSTD(1)) AFTER rtt_us,
    ADD COLUMN IF NOT EXISTS snd_cwnd UInt32 CODEC(T64, ZSTD(1)) AFTER rttvar_us,
    ADD COLUMN IF NOT EXISTS rcv_space UInt32 CODEC(T64, ZSTD(1)) AFTER snd_cwnd;

ALTER TABLE prefix_windows
    ADD COLUMN IF NOT EXISTS bbr_starved UInt64 CODEC(T64, ZSTD(1)),
    ADD COLUMN IF NOT EXISTS bbr_samples UInt64 CODEC(T64, ZSTD(1));
