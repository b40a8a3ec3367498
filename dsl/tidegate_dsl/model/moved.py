"""A part of a policy whose clauses stand some lines further down."""

from dataclasses import fields, is_dataclass
from functools import cache
from typing import TypeVar, cast

from .clauses import Clause

T = TypeVar("T")
_PLAIN = (str, int, bool)


def moved(part: T, lines: int) -> T:
    """The part with every `Clause.line` in it so many lines further down."""
    return part if lines == 0 else cast("T", _moved(part, lines))


def _moved(part: object, lines: int) -> object:
    if isinstance(part, Clause):
        return Clause(part.line + lines, part.text)
    if isinstance(part, tuple):
        return tuple([_moved(each, lines) for each in part])
    if isinstance(part, dict):
        return {key: _moved(value, lines) for key, value in part.items()}
    if is_dataclass(part):
        kind: type = type(part)
        values = [
            getattr(part, name) if plain else _moved(getattr(part, name), lines)
            for name, plain in _fields(kind)
        ]
        return cast("object", kind(*values))
    return part


@cache
def _fields(kind: type) -> tuple[tuple[str, bool], ...]:
    """A dataclass's fields, and whether each is plain text or a number, which holds no clause."""
    return tuple((field.name, field.type in _PLAIN) for field in fields(kind))
