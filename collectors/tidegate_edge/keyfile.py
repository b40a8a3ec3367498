"""The key that turns remote addresses into pseudonyms, read from a file that others cannot read."""

import os
import stat
from pathlib import Path
from typing import Final

from .errors import Failure
from .sockets.pseudonym import MAX_KEY

MIN_KEY: Final = 16

# systemd's LoadCredential= and Ansible's usual 0640 let the service's own group read.
_FORBIDDEN: Final = stat.S_IWGRP | stat.S_IXGRP | stat.S_IRWXO
_MAKE: Final = "make one: `(umask 077; openssl rand -hex 32 > FILE)`, the same for all hosts to be compared"


def read_key(path: Path) -> bytes:
    """Read a key: 32 to 128 hexadecimal digits.

    Raises:
        Failure: the file can't be read, belongs to somebody else than root or this user, is open to others than
            its owner and its group's readers, or holds no such key. The message never shows what it holds.
    """
    try:
        # Without O_NONBLOCK a named pipe would hold the collector.
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise Failure(f"{path}: {error.strerror}", help=_MAKE) from error
    with os.fdopen(fd, "rb") as file:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise Failure(f"{path}: not a regular file", help=_MAKE)
        if status.st_uid not in {0, os.geteuid()}:
            raise Failure(
                f"{path}: belongs to the user {status.st_uid}",
                help=f"`chown root {path}`, if the key is yours",
            )
        if status.st_mode & _FORBIDDEN:
            mode = stat.S_IMODE(status.st_mode)
            raise Failure(
                f"{path}: its mode is {mode:04o}: others than its owner and group could read or change the key",
                help=f"`chmod 0600 {path}`; where it was open to read, make another key",
            )
        text = file.read(2 * MAX_KEY + 2)
    try:
        key = bytes.fromhex(text.decode("ascii").rstrip("\n"))
    except ValueError:  # not chained: its text would show part of the key
        key = b""
    if not MIN_KEY <= len(key) <= MAX_KEY:
        raise Failure(f"{path}: no key of {2 * MIN_KEY} to {2 * MAX_KEY} hexadecimal digits", help=_MAKE)
    return key
