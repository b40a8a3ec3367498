"""The `tidegate` command: telemetry in, a reviewed plan and per-POP variables out."""
