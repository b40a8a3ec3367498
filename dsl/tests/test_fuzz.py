"""No text at all breaks the checker: policies of the corpus, damaged at random, give diagnostics and nothing else.

TIDEGATE_FUZZ_EXAMPLES sets how many texts are tried, 10,000 without it. Example n is always the same text, so that
one that fails can be made again by its number.
"""

import os
import re
from functools import cache
from pathlib import Path
from random import Random

import pytest
from sound import assert_sound
from tidegate_dsl import check_text, read_fleet, read_limits
from tidegate_dsl.vocabulary import BLOCKS, METRICS, OVERRIDE, TOP_LEVEL, UNITS

HERE = Path(__file__).parent
LIMITS = read_limits(HERE / "limits.yaml")
EXAMPLES = int(os.environ.get("TIDEGATE_FUZZ_EXAMPLES", "10000"))
BATCH = 1000

FILES = [*sorted((HERE / "mistakes").glob("*.tide")), *sorted((HERE.parent / "examples").glob("*.tide"))]
HEAD = 'edition 2026.1\ninventory "fleet"\n'
WHOLE = [re.sub(r'inventory ".*"', 'inventory "fleet"', file.read_bytes().decode()) for file in FILES]
PARAGRAPHS = sorted({part for text in WHOLE for part in text.split("\n\n") if not part.startswith("edition")})
RULES = [rule for rules in (*BLOCKS.values(), OVERRIDE, TOP_LEVEL) for rule in rules.values()]
WORDS = sorted(
    {word for rule in RULES for form in rule.forms for word in form.split()} | {*METRICS, *UNITS, *BLOCKS}
)
VALUES = (
    *(
        "0",
        "1",
        "99999999999999999999",
        "0.5",
        "-1",
        "0%",
        "100%",
        "5m",
        "1 s",
        "100 KB",
        "5 Mbps",
        "10 segments",
    ),
    *(
        "/24",
        "/129",
        "192.0.2.0/24",
        "192.0.2.1/24",
        "::/0",
        "0.0.0.0/0",
        "p50",
        "p0",
        "all",
        "fra2",
        "europe",
    ),
    *(
        '"',
        '"1..."',
        '"..."',
        '""',
        "{",
        "}",
        ",",
        "<",
        ">=",
        "<=",
        ">",
        "==",
        "%",
        "2026-12-01",
        "2026-02-30T06:00Z",
    ),
    *(
        "# allow W102: why",
        "# allow W104",
        "# allow C125: no",
        "#",
        "é",
        "\u00a0",
        "\x00",
        "\ud800",
        "\ufeff",
        "\r",
        "\t",
    ),
)
fleet = cache(read_fleet)


def text_of(number: int) -> str:
    """The text of an example: a policy with other numbers or little damage, or paragraphs with much of it."""
    random = Random(number)
    kind = number % 4
    text = HEAD + "\n".join(random.choice(PARAGRAPHS) for _ in range(random.randint(1, 4)))
    if kind:
        text = random.choice(WHOLE)
    for _ in range(random.randint(0, (6, 2, 0, 0)[kind])):
        text = damaged(text, random)
    for _ in range(random.randint(1, 4) if kind > 1 else 0):
        number_at = random.choice(
            list(re.finditer(r"(?<![/.:0-9-])[1-9][0-9]?\b(?![./:-])", text[20:])) or [None]
        )
        if number_at:
            start, end = number_at.span()
            text = text[: 20 + start] + str(random.choice((0, 1, 2, 5, 9, 50, 99))) + text[20 + end :]
    return text


def damaged(text: str, random: Random) -> str:
    words = text.split(" ")
    lines = text.split("\n")
    place, line = random.randrange(len(words)), random.randrange(len(lines))
    match random.randrange(7):
        case 0:
            words[place] = random.choice(WORDS)
        case 1:
            words[place] = random.choice(VALUES)
        case 2:
            words.insert(place, random.choice((*WORDS, *VALUES)))
        case 3:
            del words[place]
        case 4:
            lines.insert(line, lines[random.randrange(len(lines))])
            return "\n".join(lines)
        case 5:
            del lines[line]
            return "\n".join(lines)
        case _:
            start = random.randrange(len(text) + 1)
            return text[:start] + random.choice(VALUES) + text[start + random.randrange(6) :]
    return " ".join(words)


@pytest.mark.timeout(0)
@pytest.mark.parametrize("first", range(0, EXAMPLES, BATCH))
def test_any_text_gives_diagnostics_and_nothing_else(first: int) -> None:
    for number in range(first, min(first + BATCH, EXAMPLES)):
        text = text_of(number)
        try:
            assert_sound(check_text(text, str(HERE / "x.tide"), limits=LIMITS, fleets=fleet), text)
        except Exception as error:
            error.add_note(f"example {number}:\n{text!r}")
            raise
