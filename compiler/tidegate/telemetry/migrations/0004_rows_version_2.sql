-- Fields that schemas/sockets.proto has since version 2 of a row.
ALTER TABLE socket_samples
    ADD COLUMN IF NOT EXISTS cgroup_id UInt64 CODEC(ZSTD(1)) AFTER bbr_cwnd_gain,
    ADD COLUMN IF NOT EXISTS remote_hash UInt64 CODEC(ZSTD(1)) AFTER cgroup_id,
    ADD COLUMN IF NOT EXISTS netns UInt32 CODEC(T64, ZSTD(1)) AFTER remote_hash,
    ADD COLUMN IF NOT EXISTS sampled UInt32 CODEC(T64, ZSTD(1)) AFTER netns;
