"""What a check leaves behind for the check of the same file's next text."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from tidegate_dsl.diagnostics import Findings

from .sections import Section
from .tree import Block, Body

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Made:
    """What a step made of a block, and of what else; the body is held, so that no other takes its `id`."""

    body: Body
    about: tuple[object, ...]
    result: Any


class Memory:
    """Pieces that were read and blocks that were checked, of one file's last text.

    Kept is what has no mistake: to read and check it again would say the same, wherever it stands.
    """

    def __init__(self) -> None:
        self._sections: dict[str, Section | None] = {}
        self._made: dict[tuple[str, int], _Made] = {}

    def sections(self, texts: Sequence[str], read: Callable[[str], Section | None]) -> list[Section | None]:
        """What the pieces of the next text are; of blocks that are not in it, nothing is remembered.

        Args:
            texts: the pieces.
            read: a piece's text to its section, or None where it is none; asked of pieces that are new.
        """
        known, self._sections = self._sections, {}
        for text in texts:
            if text not in self._sections:
                self._sections[text] = known[text] if text in known else read(text)
        bodies = {id(section.block.body) for section in self._sections.values() if section}
        self._made = {key: made for key, made in self._made.items() if key[1] in bodies}
        return [self._sections[text] for text in texts]

    def recall(
        self, what: str, block: Block, about: tuple[object, ...], findings: Findings, step: Callable[[], T]
    ) -> T:
        """What a step makes of a block.

        Args:
            what: the step's name.
            block: the block; where it stands is not looked at.
            about: everything else that the step looks at.
            findings: where the step reports; what was made with a report is made each time.
            step: makes it.
        """
        key = (what, id(block.body))
        known = self._made.get(key)
        if known is None or known.about != about:
            mistakes = len(findings.items)
            known = _Made(block.body, about, step())
            if len(findings.items) == mistakes:
                self._made[key] = known
        return known.result  # type: ignore[no-any-return]
