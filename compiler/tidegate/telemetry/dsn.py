"""The address of a telemetry store: an embedded engine or a ClickHouse server, and never a secret."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

from tidegate.errors import Failure

DATABASE: Final = "tidegate"
MEMORY: Final = "chdb://memory"
_EMBEDDED: Final = "chdb://"
_PORT: Final = {"http": 8123, "https": 8443}  # ClickHouse's own defaults
_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_TLS_FILES: Final = ("ca", "cert", "key")
_FORMS: Final = "write chdb:///path/of/a/directory, chdb://memory or https://user@host:8443/database"


@dataclass(frozen=True, slots=True)
class Embedded:
    """An engine inside this process; `directory` None keeps everything in memory."""

    directory: Path | None


@dataclass(frozen=True, slots=True)
class Server:
    """A ClickHouse server over HTTP. `ca`, `cert` and `key` are PEM files; None uses the system's own CAs."""

    scheme: str
    host: str
    port: int
    user: str
    database: str
    ca: str | None
    cert: str | None
    key: str | None

    @property
    def name(self) -> str:
        """How messages call it."""
        return f"{self.scheme}://{self.host}:{self.port}"


def parse_dsn(dsn: str) -> Embedded | Server:
    """What a DSN names.

    A path behind `chdb://` is taken as it is written, without percent-decoding.

    Raises:
        Failure: not one of the three forms, an unknown option, or a password in it.
    """
    if dsn.startswith(_EMBEDDED):
        return _embedded(dsn)
    try:
        parts = urlsplit(dsn)
        port = parts.port
    except ValueError as error:
        raise Failure(f"the store's DSN is damaged: {error}", help=_FORMS) from error
    if parts.password is not None:
        # The value is not repeated: messages end up in logs.
        raise Failure(
            "a password stands in the store's DSN, where every user of this machine can read it",
            help="give it in TIDEGATE_CLICKHOUSE_PASSWORD, or in a file named by TIDEGATE_CLICKHOUSE_PASSWORD_FILE",
        )
    if parts.scheme not in _PORT or not parts.hostname:
        raise Failure(f"`{dsn}` is not the DSN of a store", help=_FORMS)
    database = unquote(parts.path.strip("/")) or DATABASE
    if not _IDENTIFIER.fullmatch(database):
        raise Failure(f"`{database}` in the store's DSN is not a database name", help=_FORMS)
    return Server(
        scheme=parts.scheme,
        host=parts.hostname,
        port=port or _PORT[parts.scheme],
        user=unquote(parts.username or "") or "default",
        database=database,
        **_tls_files(parts),
    )


def _embedded(dsn: str) -> Embedded:
    if dsn == MEMORY:
        return Embedded(None)
    path = dsn.removeprefix(_EMBEDDED)
    if not path.startswith("/"):
        raise Failure(f"`{dsn}` does not name a directory by its whole path", help=_FORMS)
    if "?" in path:  # chdb reads engine options behind it
        raise Failure(
            f"`{dsn}`: the embedded store's path cannot hold a question mark", help="rename the directory"
        )
    return Embedded(Path(path))


def _tls_files(parts: SplitResult) -> dict[str, str | None]:
    options = parse_qs(parts.query, keep_blank_values=True)
    for name, values in options.items():
        if name not in _TLS_FILES:
            raise Failure(
                f"unknown option `{name}` in the store's DSN",
                help="there are ca, cert and key, each the path of a PEM file",
            )
        if parts.scheme != "https":
            raise Failure(f"option `{name}` in the store's DSN needs https", help=_FORMS)
        if not Path(values[-1]).is_file():
            raise Failure(f"`{values[-1]}`, the `{name}` of the store's DSN, is not a file")
    return {name: options[name][-1] if name in options else None for name in _TLS_FILES}
