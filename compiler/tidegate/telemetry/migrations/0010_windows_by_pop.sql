-- A window is closed for one POP: of how many samples there were, counted just before, and of what length. Rows without a
-- POP are of windows that were closed for all of them, before this migration.
ALTER TABLE closed_windows
    ADD COLUMN IF NOT EXISTS pop LowCardinality(String),
    ADD COLUMN IF NOT EXISTS rows UInt64,
    ADD COLUMN IF NOT EXISTS step_s UInt32,
    MODIFY ORDER BY (view, window_start, pop);
