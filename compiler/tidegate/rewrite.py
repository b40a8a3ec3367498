"""Replacing a file that somebody else keeps: it stays theirs, and links to it stay links."""

import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

from tidegate.errors import Failure


def rewrite(path: Path, text: str) -> None:
    """Replace what `path` holds, or what it leads to as a symbolic link: written aside, then renamed.

    Mode and owner stay; the owner only where this user may give files away.

    Raises:
        Failure: it is no regular file, or it or its directory cannot be written; what stood there stays.
    """
    aside: str | None = None
    try:
        was = path.stat()
        if not stat.S_ISREG(was.st_mode):
            raise Failure(f"{path}: is no regular file, so nothing is written")
        target = path.resolve(strict=True)
        if not os.access(
            target, os.W_OK
        ):  # a rename asks the directory only, and would pass over a read-only mark
            raise Failure(f"{path}: cannot be written: it is read-only", help="what stood there is unchanged")
        descriptor, aside = tempfile.mkstemp(dir=target.parent, prefix=".tidegate-")
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            if (was.st_uid, was.st_gid) != (os.geteuid(), os.getegid()):
                with suppress(PermissionError):
                    os.fchown(descriptor, was.st_uid, was.st_gid)
            os.fchmod(descriptor, stat.S_IMODE(was.st_mode))  # behind fchown, which takes set-id bits away
            os.fsync(descriptor)
        Path(aside).replace(target)
        aside = None
    except OSError as error:
        raise Failure(
            f"{path}: cannot be written: {error.strerror}", help="what stood there is unchanged"
        ) from error
    finally:
        if aside is not None:
            Path(aside).unlink(missing_ok=True)
