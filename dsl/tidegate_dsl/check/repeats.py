"""Names and prefixes that stand twice in one list."""

from collections.abc import Sequence

from tidegate_dsl.diagnostics import Edit, Findings, Fix
from tidegate_dsl.syntax import tree


def check_repeats(names: Sequence[tree.Name], meanings: Sequence[object], findings: Findings) -> bool:
    """Whether a list names something twice; the first such name is reported.

    Args:
        names: the list as written, all on one line.
        meanings: what each stands for; two spellings of one thing are one.
        findings: where mistakes go.
    """
    first: dict[object, tree.Name] = {}
    for before, name, meaning in zip((None, *names), names, meanings, strict=False):
        if meaning in first and before is not None:
            known = first[meaning].text
            findings.error(
                "C129",
                f"`{name.text}` stands in this list already",
                name.span,
                notes=() if known == name.text else (f"as `{known}`",),
                help="name it once",
                fix=Fix("remove it", (Edit(before.span.end.to(name.span), ""),)),
            )
            return True
        first[meaning] = name
    return False
