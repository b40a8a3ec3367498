"""The word that was probably meant."""

from collections.abc import Iterable

_CUTOFF = 0.7  # `botom` finds `bottom` and `fra1` finds `fra2`, while `hold` is not taken for `hold_out`
_LONGEST = 40  # longer than any word of the language


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
