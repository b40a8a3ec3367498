"""Where telemetry is kept: the store, its schema, and what is loaded into it."""
