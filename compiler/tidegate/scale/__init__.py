"""What a fleet's telemetry takes: `python -m tidegate.scale` prints the tables of docs/scale.md for any fleet."""
