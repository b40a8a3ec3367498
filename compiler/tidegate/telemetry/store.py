"""Opens the telemetry store: one client, whether an embedded engine or a server answers.

The embedded engine (chdb) allows one directory a process at a time; clients of the same directory share it,
and after the last of them is closed another may be opened. Another process cannot open it meanwhile.
"""

import fcntl
import ipaddress
import logging
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from importlib import import_module
from pathlib import Path
from typing import Final

import clickhouse_connect
from clickhouse_connect.driver.client import Client
from clickhouse_connect.driver.exceptions import ClickHouseError, OperationalError

from tidegate.errors import BAD_INPUT, MISSING_PART, Failure
from tidegate.files import read_text
from tidegate.telemetry.dsn import DATABASE, Embedded, Server, parse_dsn
from tidegate.telemetry.schema_form import join_cluster
from tidegate.telemetry.schema_tokens import forget_tokens_without_rows

PASSWORD: Final = "TIDEGATE_CLICKHOUSE_PASSWORD"  # noqa: S105 - the variable's name
PASSWORD_FILE: Final = "TIDEGATE_CLICKHOUSE_PASSWORD_FILE"  # noqa: S105 - the variable's name
CONNECT_TIMEOUT_S: Final = 5
ANSWER_TIMEOUT_S: Final = 300
_ENGINE: Final = "chdb"
_ALLOCATOR: Final = "JE_MALLOC_CONF"
_UNKNOWN_DATABASE: Final = 81  # ClickHouse, src/Common/ErrorCodes.cpp


@contextmanager
def open_store(dsn: str) -> Iterator[Client]:
    """A client of the store that `dsn` names; embedded, directory and database are made where they are missing.

    The password of a server comes from the environment variable TIDEGATE_CLICKHOUSE_PASSWORD, or from the file
    that TIDEGATE_CLICKHOUSE_PASSWORD_FILE names.

    Raises:
        Failure: a wrong DSN (exit 2); unreachable, in use by another process, not installed, or the store
            refused what was asked of it (exit 3).
    """
    target = parse_dsn(dsn)
    logging.getLogger("clickhouse_connect").addHandler(logging.NullHandler())  # its errors become ours below
    if isinstance(target, Embedded):
        name, client = str(target.directory or "memory"), _open_embedded(target)
    else:
        name, client = target.name, _open_server(target, os.environ)
    try:
        if isinstance(target, Server):
            join_cluster(client)
        yield client
    except OperationalError as error:
        raise _missing(f"the telemetry store {name} stopped answering: {_reason(error)}") from error
    except ClickHouseError as error:
        raise _missing(f"the telemetry store {name} refused: {_reason(error)}") from error
    finally:
        client.close()


def _open_embedded(target: Embedded) -> Client:
    if target.directory is not None:
        _claim(target.directory)
    path = str(target.directory or ":memory:")
    try:
        _load_engine()
        with closing(clickhouse_connect.get_client(interface="chdb", path=path)) as first:
            first.command(f"CREATE DATABASE IF NOT EXISTS {DATABASE}")
            return clickhouse_connect.get_client(interface="chdb", path=path, database=DATABASE)
    except ImportError as error:
        raise _missing(
            f"the embedded telemetry store cannot be loaded: {error}",
            "if it is not installed: pip install 'tidegate[embedded]', or name a server with --dsn",
        ) from error
    except ClickHouseError as error:
        raise _missing(f"the embedded telemetry store {path} cannot be opened: {_reason(error)}") from error


def _load_engine() -> None:
    """Have the engine's allocator ask for large pages, unless the environment says how it is to work.

    jemalloc reads its settings when it is loaded (jemalloc(3), TUNING). With large pages loading rows and closing
    windows took a fifth less time, and a tenth more memory.
    """
    if _ALLOCATOR in os.environ or _ENGINE in sys.modules:
        return
    os.environ[_ALLOCATOR] = "thp:always"
    try:
        import_module(_ENGINE)
    finally:
        del os.environ[_ALLOCATOR]  # who is started from here has settings of its own


def _claim(directory: Path) -> None:
    """Make the store's directory, and refuse one that another process has open.

    The engine refuses it too, but with its own words on standard error and without saying who holds it.
    """
    status = directory / "status"  # ClickHouse locks it and writes its process id into it
    try:
        directory.mkdir(parents=True, exist_ok=True)
        file = status.open("rb")
    except FileNotFoundError:
        return
    except OSError as error:
        raise _missing(
            f"the telemetry store's directory {directory} cannot be used: {error.strerror}"
        ) from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = re.match(rb"PID: (\d+)", file.read(64))
            if holder is None or int(holder[1]) != os.getpid():
                who = f"process {int(holder[1])}" if holder else "another process"
                raise _missing(
                    f"the telemetry store {directory} is in use by {who}",
                    "wait until it ends, or use a ClickHouse server, which many may use at once",
                ) from error
            return
        try:
            forget_tokens_without_rows(directory)  # nobody has it open
        except OSError as error:
            raise _missing(f"the telemetry store {directory} cannot be mended: {error}") from error


def _open_server(target: Server, environment: Mapping[str, str]) -> Client:
    try:
        return clickhouse_connect.get_client(
            interface=target.scheme,
            host=target.host,
            port=target.port,
            username=target.user,
            password=_password(target, environment),
            database=target.database,
            connect_timeout=CONNECT_TIMEOUT_S,
            send_receive_timeout=ANSWER_TIMEOUT_S,
            ca_cert=target.ca,
            client_cert=target.cert,
            client_cert_key=target.key,
            autogenerate_session_id=False,  # a session takes one query at a time
        )
    except OperationalError as error:
        raise _missing(
            f"the ClickHouse server {target.name} cannot be reached: {_reason(error)}",
            "check --dsn, the network and the certificate; without --dsn the embedded store is used",
        ) from error
    except ClickHouseError as error:
        unknown = getattr(error, "code", None) == _UNKNOWN_DATABASE
        raise _missing(
            f"the ClickHouse server {target.name} refused `{target.user}`: {_reason(error)}",
            f"create it there: CREATE DATABASE {target.database}"
            if unknown
            else f"its password comes from {PASSWORD}",
        ) from error


def _password(target: Server, environment: Mapping[str, str]) -> str:
    """The server's password, from the environment or a file; empty where neither is set."""
    password = environment.get(PASSWORD, "")
    if PASSWORD_FILE in environment:
        if password:
            raise Failure(f"both {PASSWORD} and {PASSWORD_FILE} are set", help="unset one of them")
        password = read_text(Path(environment[PASSWORD_FILE]), max_bytes=4096).rstrip("\r\n")
    if password and target.scheme == "http" and not _is_this_machine(target.host):
        raise Failure(
            f"a password would pass to {target.name} in clear text",
            help=f"use https, or unset {PASSWORD}",
            exit_code=BAD_INPUT,
        )
    return password


def _is_this_machine(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _missing(message: str, way_out: str | None = None) -> Failure:
    return Failure(message, help=way_out, exit_code=MISSING_PART)


def _reason(error: Exception) -> str:
    """The first line of what the engine said, without its version, its stack trace and the driver's frame."""
    cause = getattr(error.__cause__, "reason", None)  # urllib3.exceptions.MaxRetryError
    text = re.sub(r"^HTTPS?Connection\(.*?\): ", "", str(cause or error)).split(", Stack trace", 1)[0]
    first = (text.strip() or type(error).__name__).splitlines()[0].rpartition("DB::Exception: ")[2]
    return re.sub(r"\s*\((version|for url) .*\)$", "", first)
