"""The word that was probably meant."""

from collections.abc import Iterable
from typing import Final

from .report import Fix, replacement
from .source import Span

_CUTOFF = 0.7  # `botom` finds `bottom` and `fra1` finds `fra2`, while `hold` is not taken for `hold_out`
_LONGEST = 40  # longer than any word of the language
_MARGIN: Final = 0.1  # a second word as near as this makes the first a guess


def nearest(word: str, candidates: Iterable[str]) -> str | None:
    """The candidate that `word` mistypes, or None where none is near."""
    if len(word) > _LONGEST:
        return None
    words = list(candidates)
    plain = word.lower().replace("-", "_")
    for candidate in words:
        if candidate.lower() == plain:
            return candidate
    from difflib import get_close_matches  # noqa: PLC0415 - only a file with a mistake pays for it

    return next(iter(get_close_matches(word, words, n=1, cutoff=_CUTOFF)), None)


def spelling(span: Span, word: str, candidates: Iterable[str]) -> Fix | None:
    """The fix of a mistyped word; None where none is near, two are about as near, or a digit would change.

    A digit is rarely a slip of the pen: `fra1` is another place than `fra2`.

    Args:
        span: where the word stands.
        word: what was written.
        candidates: what may stand there.
    """
    words = list(candidates)
    meant = nearest(word, words)
    if meant is None or _digits(meant) != _digits(word):
        return None
    if meant.lower() != word.lower().replace("-", "_"):
        from difflib import SequenceMatcher  # noqa: PLC0415 - as in `nearest`

        near = sorted((SequenceMatcher(None, other, word).ratio() for other in words), reverse=True)
        if len(near) > 1 and near[0] - near[1] < _MARGIN:
            return None
    return replacement(span, meant)


def _digits(word: str) -> list[str]:
    return [character for character in word if character.isdigit()]


def advice(word: str, candidates: Iterable[str], *, what: str = "one of") -> str:
    """A help line: the word that was probably meant, or else all that may stand there.

    Args:
        word: what was written.
        candidates: what may stand there, in the order to list it.
        what: words before the list.
    """
    words = list(candidates)
    meant = nearest(word, words)
    return f"did you mean `{meant}`?" if meant else f"{what} {listed(words)}"


def listed(words: Iterable[str]) -> str:
    """`a`, `b`, `c`; a long list is cut."""
    shown = [f"`{word}`" for word in words]
    return ", ".join(shown) if len(shown) <= 12 else ", ".join([*shown[:12], f"and {len(shown) - 12} more"])


def either(words: Iterable[str]) -> str:
    """`a` or `b`."""
    return " or ".join(f"`{word}`" for word in words)
