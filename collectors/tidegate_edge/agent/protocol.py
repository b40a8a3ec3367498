"""What goes over the agent's socket: one request line, one answer line, both JSON; a file goes as a descriptor."""

import json
import os
import stat
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final, TypeAlias

from tidegate_edge.errors import BAD_INPUT, Failure
from tidegate_edge.steer.steering import MAX_BYTES

MAX_REQUEST_BYTES: Final = 1 << 16
MAX_ANSWER_BYTES: Final = 1 << 26  # a status of 100,000 claims is a third of it

Document: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class SentFile:
    """A file that came with a request: what the asker calls it, and what it holds."""

    name: Path
    text: bytes


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked for; `arguments` are checked by the command that reads them, `descriptor`: of a file sent."""

    command: str
    arguments: Document
    descriptor: int | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What the asker prints, and exits with; `message` and `help` are those of a failure."""

    exit_code: int
    document: Document | None = None
    message: str | None = None
    help: str | None = None


def request_line(command: str, arguments: Document) -> bytes:
    """A request as it is sent."""
    return json.dumps({"command": command, "arguments": arguments}).encode() + b"\n"


def request_of(line: bytes, descriptor: int | None) -> Request:
    """Read a request; a file that came with it is not touched yet.

    Raises:
        Failure: it is none.
    """
    try:
        document = json.loads(line)
        command, arguments = document["command"], document["arguments"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise Failure(f"this is no request: {error}", exit_code=BAD_INPUT) from error
    if not isinstance(command, str) or not isinstance(arguments, dict):
        raise Failure("this is no request: a command is a word, its arguments an object", exit_code=BAD_INPUT)
    return Request(command, arguments, descriptor)


def answer_line(answer: Answer) -> bytes:
    """An answer as it is sent."""
    # Not `asdict`, which would copy the document of 10,000 claims, entry by entry.
    return json.dumps({each.name: getattr(answer, each.name) for each in fields(answer)}).encode() + b"\n"


def answer_of(line: bytes) -> Answer:
    """Read an answer.

    Raises:
        ValueError: it is none.
    """
    try:
        return Answer(**json.loads(line))
    except TypeError as error:
        raise ValueError(str(error)) from error


def read_sent(request: Request) -> SentFile:
    """Read the file that came with a request whole.

    Raises:
        Failure: none came, or it is no regular file, or larger than 16 MiB, or can't be read.
    """
    name, descriptor = Path(str(request.arguments.get("name", "the file sent"))), request.descriptor
    if descriptor is None:
        raise Failure(f"`{request.command}` comes with a steering file", exit_code=BAD_INPUT)
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):  # a pipe would hold the daemon up
        raise Failure(f"{name}: no regular file", exit_code=BAD_INPUT)
    if found.st_size > MAX_BYTES:
        raise Failure(f"{name}: larger than {MAX_BYTES} bytes", exit_code=BAD_INPUT)
    try:
        return SentFile(name, os.pread(descriptor, MAX_BYTES, 0))
    except OSError as error:
        raise Failure(f"{name}: {error.strerror}", exit_code=BAD_INPUT) from error
