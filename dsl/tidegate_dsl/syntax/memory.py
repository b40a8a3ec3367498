"""What a check leaves behind for the check of the same file's next text."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from tidegate_dsl.diagnostics import Findings

from .sections import Sections, cut
from .tree import Block

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Made:
    """What a step made of a block, and of what else; the block is held, so that no other takes its `id`."""

    block: Block
    about: tuple[object, ...]
    result: Any


class Memory:
    """Sections that were read and blocks that were checked, of one file's last text.

    Kept is what has no mistake and stands where it stood: to read and check it again would say the same.
    """

    def __init__(self) -> None:
        self._sections: Sections = {}
        self._made: dict[tuple[str, int], _Made] = {}

    def read(self, text: str) -> Sections:
        """The sections of the next text; of blocks that are not in it, nothing is remembered."""
        self._sections = cut(text, self._sections)
        blocks = {id(section.block) for section in self._sections.values()}
        self._made = {key: made for key, made in self._made.items() if key[1] in blocks}
        return self._sections

    def recall(
        self, what: str, block: Block, about: tuple[object, ...], findings: Findings, step: Callable[[], T]
    ) -> T:
        """What a step makes of a block.

        Args:
            what: the step's name.
            block: the block.
            about: everything else that the step looks at, but for the block's text.
            findings: where the step reports; what was made with a report is made each time.
            step: makes it.
        """
        key = (what, id(block))
        known = self._made.get(key)
        if known is None or known.about != about:
            mistakes = len(findings.items)
            known = _Made(block, about, step())
            if len(findings.items) == mistakes:
                self._made[key] = known
        return known.result  # type: ignore[no-any-return]
