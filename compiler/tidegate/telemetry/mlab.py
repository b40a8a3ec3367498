"""Reads M-Lab's archives of NDT tests: a .tgz with one member a test (`ndt7`) or a connection (`tcpinfo`).

Members are streamed, never written to disk, and everything is bounded: an archive comes from outside.
"""

import gzip
import io
import re
import tarfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import numpy as np
import zstandard

from tidegate.errors import Failure
from tidegate.schemas.rows import ROW
from tidegate.schemas.sockets_pb2 import TRAFFIC_CLASS_CLIENT
from tidegate.telemetry import mlab_ndt7, mlab_tcpinfo
from tidegate.telemetry.block import BLOCK_ROWS
from tidegate.telemetry.file_refusal import unreadable
from tidegate.telemetry.mlab_record import Snapshots

Datatype = Literal["ndt7", "tcpinfo"]
MAX_ARCHIVE_BYTES: Final = 2**30  # unpacked from its gzip
MAX_MEMBER_BYTES: Final = 32 * 2**20  # unpacked from its own compression
_ZSTD_WINDOW: Final = 2**27  # bytes; the most that zstd's own tool unpacks unasked
_ZSTD_SLICE: Final = 1024  # compressed bytes: even of a bomb they unpack to no more than some 32 MB
_NAME: Final = re.compile(
    r"\d{8}T\d{6}(\.\d+)?Z-(?P<datatype>ndt7|tcpinfo)-(?P<host>mlab\d)-(?P<site>[a-z]{3}\d\w)-ndt\.tgz"
)
_DECODERS: Final[dict[str, Callable[[bytes], Snapshots]]] = {
    "ndt7": mlab_ndt7.decode,
    "tcpinfo": mlab_tcpinfo.decode,
}
_DAMAGED: Final = (tarfile.TarError, zlib.error, gzip.BadGzipFile, EOFError, zstandard.ZstdError)


@dataclass(frozen=True, slots=True)
class Origin:
    """What an archive's name says: its format, and the host and site that its sockets were on."""

    datatype: Datatype
    host: str
    site: str


class _TooLargeError(ValueError):
    pass


def origin(path: Path) -> Origin:
    """Where an archive comes from.

    Raises:
        Failure: the name is not M-Lab's; nothing inside says which site the sockets were on.
    """
    match = _NAME.fullmatch(path.name)
    if match is None:
        raise Failure(
            f"{path}: a gzip file whose name is not that of an M-Lab archive",
            help="keep the archive's own name, such as 20200318T003853Z-ndt7-mlab3-syd03-ndt.tgz: it tells the site",
        )
    datatype: Datatype = "ndt7" if match["datatype"] == "ndt7" else "tcpinfo"
    return Origin(datatype, match["host"], match["site"])


def read(path: Path) -> Iterator[Snapshots]:
    """The archive's snapshots as rows of traffic class client, addresses cut to /24 and /56; the POP is the site.

    They come `BLOCK_ROWS` at a time, and the rest of the record that makes them so many.

    Raises:
        Failure: unreadable, damaged or too large; names the member, or the byte of the archive.
    """
    source = origin(path)
    decode = _DECODERS[source.datatype]
    gathered: list[Snapshots] = []
    rows = 0
    for name, data in _members(path):
        try:
            found = decode(data)
        except (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError) as error:
            raise Failure(f"{path}: {name}: not {source.datatype} data: {error}") from error
        found.rows["pop"], found.rows["host"] = source.site.encode(), source.host.encode()
        found.rows["traffic_class"] = TRAFFIC_CLASS_CLIENT
        gathered.append(found)
        rows += len(found.rows)
        if rows >= BLOCK_ROWS:
            yield _joined(gathered)
            gathered, rows = [], 0
    if gathered:
        yield _joined(gathered)


def _joined(found: list[Snapshots]) -> Snapshots:
    left_out: Counter[str] = Counter()
    for each in found:
        left_out.update(each.left_out)
    # As bytes: numpy copies a record's fields only, and the frame between them belongs to the block's digest.
    whole = np.concatenate([np.ascontiguousarray(each.rows).view(np.uint8) for each in found])
    return Snapshots(whole.view(ROW), left_out)


class _Bounded(io.RawIOBase):
    """A gzip stream that ends in an error where it unpacks to too much."""

    def __init__(self, stream: gzip.GzipFile) -> None:
        self._stream = stream
        self._left = MAX_ARCHIVE_BYTES

    def read(self, size: int = -1) -> bytes:
        data = self._stream.read(min(size, 2**20) if size >= 0 else 2**20)
        self._left -= len(data)
        if self._left < 0:
            raise _TooLargeError(f"unpacks to more than {MAX_ARCHIVE_BYTES} bytes")
        return data


def _members(path: Path) -> Iterator[tuple[str, bytes]]:
    """Name and unpacked content of each regular member, in order; at the end gzip's checksum has been compared."""
    try:
        with path.open("rb") as file, gzip.GzipFile(fileobj=file) as unzipped:
            bounded = _Bounded(unzipped)
            name = "its beginning"
            try:
                with tarfile.open(fileobj=bounded, mode="r|") as archive:
                    for member in archive:
                        name = member.name
                        content = archive.extractfile(member) if member.isreg() else None
                        if content is not None:
                            yield name, _unpacked(name, content.read(MAX_MEMBER_BYTES + 1))
                        archive.members.clear()  # type: ignore[attr-defined]  # else tarfile keeps every header
                while bounded.read(2**20):
                    pass
            except (*_DAMAGED, _TooLargeError) as error:
                where = f"at {name}, before byte {file.tell()} of the archive"
                raise Failure(f"{path}: {where}: {str(error) or 'it is cut'}") from error
    except OSError as error:
        raise unreadable(path, error) from error


def _unpacked(name: str, data: bytes) -> bytes:
    if name.endswith(".gz"):
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as stream:
            data = stream.read(MAX_MEMBER_BYTES + 1)
    elif name.endswith(".zst"):
        data = _unpacked_zstd(data)
    if len(data) > MAX_MEMBER_BYTES:
        raise _TooLargeError(f"a member of more than {MAX_MEMBER_BYTES} bytes")
    return data


def _unpacked_zstd(data: bytes) -> bytes:
    """All frames of a zstd file. A cut one is an error, which zstandard's own stream reader passes over."""
    out = bytearray()
    while data:
        frame = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW).decompressobj()
        for start in range(0, len(data), _ZSTD_SLICE):
            out += frame.decompress(data[start : start + _ZSTD_SLICE])
            if len(out) > MAX_MEMBER_BYTES:
                return bytes(out)
            if frame.eof:
                data = frame.unused_data + data[start + _ZSTD_SLICE :]
                break
        else:
            raise EOFError("a zstd frame is cut")
    return bytes(out)
