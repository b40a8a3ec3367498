"""Where telemetry is kept: the store, its schema, and what is loaded into it.

Importing it without the packages of the extra `tidegate[server]` raises a `Failure` that says so.
"""

from importlib import import_module

from tidegate.errors import MISSING_PART, Failure

for _package in ("clickhouse_connect", "google.protobuf", "numpy", "pyarrow", "zstandard"):
    try:
        import_module(_package)
    except ImportError as error:
        raise Failure(
            f"the telemetry store needs the Python package `{error.name}`",
            help="install it: pip install 'tidegate[embedded]', or 'tidegate[server]' without the embedded engine",
            exit_code=MISSING_PART,
        ) from error
