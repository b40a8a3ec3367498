"""Whatever the layout: formatting changes no meaning and no comment, is done once for all, and never breaks."""

from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from random import Random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tidegate_dsl.diagnostics import Findings, Source, Span
from tidegate_dsl.format import FormatError, format_text
from tidegate_dsl.syntax import lex, parse_policy, tree

ROOM = Path(__file__).parents[1]
EXAMPLES = [path.read_bytes().decode() for path in sorted((ROOM / "examples").glob("*.tide"))]
TEXTS = [
    *EXAMPLES,
    *(path.read_bytes().decode() for path in sorted((ROOM / "tests/mistakes").glob("*.tide"))),
]

# `|` divides the alternatives of a word, `~` marks where a blank may be left out or written.
CLAUSES = {
    "select": (
        "measure rtt|delivery_rate by prefix /24 /56",
        "from traffic client",
        "from traffic client where bytes_acked>=100~KB and not app_limited and rtt<1.5~ms",
        "over 6~h step 5~m",
        "rank bottom|top 20~% of pop",
        "rank bottom 20~% of pop and delivery_rate<5~Mbps",
        "rank cwnd<=10~segments",
        "require duty_cycle>=66.7~% leave<50~%",
        "require samples>=20 per window",
        "require windows>=60 leave<48",
        "exclude min_rtt<10~ms leave<8~ms",
        "exclude bytes_sent>0010.50~KiB",
        "hold 2~h|90~s|1~d|5~hours",
    ),
    "apply": (
        "to slow",
        "in all except iad1,fra2",
        "set congestion_control bbr",
        "when transfer_size>=100~KB",
        "fallback ungated",
        "limit 40 new prefixes per run",
        "hold_out 10~% of prefixes",
        "active 2026-11-01 until 2027-02-01T06:00Z",
    ),
    "learn": (
        "observe cwnd by destination",
        "toward peer_pops,origins",
        "smooth 0.5 every 1~s",
        "set initrwnd 100~segments",
        "hold_out 10~% of destinations",
    ),
    "initcwnd": ("for ipv4,2001:db8::/32,192.0.2.0/24", "in all", "set initcwnd 20~segments"),
    "guard": (
        "watch treat",
        "abort when delivery_rate p10<95~% of hold_out",
        "require prefixes>=20 per arm",
        "limit churn<=30~% per run",
        "on_failure freeze",
        "on_failure release for 24~h",
    ),
    "experiment": ("on treat", "hold_out 50~% of hosts", "switchback 6~h"),
    "test": (
        'given 192.0.2.0/24 in fra2 membership "1 .. 0" selected',
        'given telemetry "a  b.pb" until 2026-12-01',
        "expect slow excludes 2001:db8:7::/56 in fra2 because flap_rate",
    ),
}
OVERRIDE = ("when transfer_size>=250~KB", "limit 50 prefixes per pop")
COMMENTS = (
    "#",
    "# plain",
    "#\ttab  and  blanks",
    '# "quoted { } 5 m',
    "# a\rb",
    "# \u00e9 \u6ce2",
    "## double",
)
BLANKS = (" ", "  ", "\t", " \t ")


class Page:
    """A policy that is written down in a random layout."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.text = random.choice(("", "", "\ufeff"))
        self.allows = 0

    def policy(self) -> str:
        self.lines_end()
        for clause in self.random.sample(("edition 2026.1", 'inventory "a  b"'), self.random.randrange(3)):
            self.clause(clause)
            self.lines_end()
        for number in range(self.random.randrange(4)):
            self.block(number)
        if self.random.random() < 0.5:
            self.text = self.text.rstrip("\r\n")
        return self.text

    def block(self, number: int) -> None:
        kind = self.random.choice(list(CLAUSES))
        name = f'"a {number}  b"' if kind == "test" else f"name-{number}"
        self.text += kind + ("" if kind == "test" and self.rarely() else self.blank()) + name
        self.brace("{")
        for _ in range(self.random.randrange(5)):
            if kind == "apply" and self.rarely():
                self.override()
            else:
                self.clause(self.random.choice(CLAUSES[kind]))
            self.lines_end()
        self.close()

    def override(self) -> None:
        self.text += f"override{self.blank()}fra2"
        self.brace("{")
        for clause in self.random.sample(OVERRIDE, self.random.randrange(3)):
            self.clause(clause)
            self.lines_end()
        self.close(ends_line=True)

    def brace(self, text: str) -> None:
        self.text += self.random.choice(("", *BLANKS)) + text
        if self.random.random() < 0.7:
            self.lines_end()

    def close(self, *, ends_line: bool = False) -> None:
        """Write `}`, now and then behind the clause; what is on the same line must not be a comment."""
        *above, last = self.text.split("\n")
        if self.rarely() and not last.strip() and above and "#" not in above[-1]:
            self.text = "\n".join(above).rstrip("\r")
        self.brace("}")
        if ends_line and not self.text.endswith("\n"):
            self.text += "\n"

    def clause(self, form: str) -> None:
        words = [self.random.choice(word.split("|")) for word in form.split(" ")]
        text = words[0]
        for word in words[1:]:
            text += self.blank() + word
        for sign in (">=", "<=", "<", ">", ","):
            if sign in text and text.count(sign + "=") == 0:
                text = text.replace(sign, self.maybe_blank() + sign + self.maybe_blank())
        while "~" in text:
            text = text.replace("~", self.maybe_blank(), 1)
        self.text += text

    def lines_end(self) -> None:
        """End the line, now and then behind a comment; then some empty lines and comments alone."""
        if self.rarely():
            self.text += self.maybe_blank() + self.comment()
        self.text += self.end()
        for _ in range(self.random.choice((0, 0, 1, 2, 3))):
            if self.rarely():
                self.text += self.maybe_blank() + self.comment()
            self.text += self.maybe_blank() + self.end()
        if self.rarely():
            self.text += self.maybe_blank() + self.comment() + self.end()
        self.text += self.maybe_blank()

    def comment(self) -> str:
        if self.random.random() < 0.4:
            self.allows += 1
            return f"# allow W101: reason {self.allows}"
        return self.random.choice(COMMENTS)

    def end(self) -> str:
        return self.random.choice(("\n", "\n", "\r\n"))

    def blank(self) -> str:
        return self.random.choice(BLANKS)

    def maybe_blank(self) -> str:
        return self.random.choice(("", *BLANKS))

    def rarely(self) -> bool:
        return self.random.random() < 0.3


def read(text: str) -> tree.File:
    source, findings = Source("policy.tide", text), Findings("policy.tide")
    file = parse_policy(source, findings)
    assert findings.items == [], text
    return file


def meaning(node: object) -> object:
    """A tree without places, and numbers without the blanks before their units."""
    if isinstance(node, Span):
        return None
    if isinstance(node, tree.Quantity):
        return node.mantissa, node.scale, node.unit
    if isinstance(node, tree.Edition):
        return node.edition.text.replace(" ", "")
    if isinstance(node, tuple):
        return [meaning(each) for each in node]
    if isinstance(node, tree.Block):
        node = replace(node, above=0)
    if is_dataclass(node):
        return type(node).__name__, [meaning(getattr(node, field.name)) for field in fields(node)]
    return node


def allowed(text: str) -> dict[str, set[int]]:
    """Of each `# allow` comment: which headers and clauses it stands behind or directly above, by their number."""
    file = read(text)
    spans: list[Span] = [clause.span for clause in file.head.clauses]
    for block in file.blocks:
        own = [block.span]
        for clause in block.body.clauses:
            own.append(clause.span)
            if isinstance(clause, tree.Override):
                own += [inner.span for inner in clause.body.clauses]
        spans += [span.below(block.above) for span in own]
    code = {token.span.line for token in lex(Source("", text), Findings("")).tokens if token.text}
    found: dict[str, set[int]] = {}
    for comment in file.comments:
        if comment.text.startswith("# allow"):
            line = comment.span.line + (comment.span.line not in code)
            numbers = {n for n, span in enumerate(sorted(spans)) if span.line == line}
            assert comment.text not in found
            found[comment.text] = numbers
    return found


def comments(text: str) -> list[str]:
    return [comment.text for comment in read(text).comments]


def keeps_its_promises(text: str, result: str) -> None:
    assert meaning(read(result)) == meaning(read(text))
    assert comments(result) == comments(text)
    assert format_text(result) == result
    assert not any(line != line.rstrip(" \t") for line in result.split("\n"))
    assert "\n\n\n" not in result
    assert not result.startswith("\n")
    assert result == "" or (result.endswith("\n") and not result.endswith("\n\n"))


@settings(max_examples=150, deadline=None)
@given(st.randoms(use_true_random=False))
def test_any_layout_of_a_policy_becomes_the_canonical_one(random: Random) -> None:
    text = Page(random).policy()
    result = format_text(text)
    keeps_its_promises(text, result)
    before, after = allowed(text), allowed(result)
    for comment, clauses in before.items():
        assert after[comment] <= clauses, comment
        assert after[comment] or not clauses, comment


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(EXAMPLES), st.randoms(use_true_random=False))
def test_other_blanks_leave_nothing_behind(example: str, random: Random) -> None:
    lexed = lex(Source("", example), Findings(""))
    rows = [random.choice(("", *BLANKS)) for _ in example.split("\n")]
    ends = [0] * len(rows)
    for token in lexed.tokens:
        row = token.span.line - 1
        if token.text:
            rows[row] += (random.choice(BLANKS) if ends[row] else "") + token.text
            ends[row] = token.span.end_column
    for comment in lexed.comments:
        row = comment.span.line - 1
        rows[row] += (" " * (comment.span.column - ends[row]) if ends[row] else "") + comment.text
    assert format_text("".join(row + random.choice(("\n", "\r\n", " \n")) for row in rows)) == example


PIECES = (*'{}#"\n\r\t ,%5h<\ufeff\u2028', "ms", "override x {")


@st.composite
def mutated(draw: st.DrawFn) -> str:
    text = draw(st.sampled_from(TEXTS))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.sampled_from((0, 0, 1, 2, 8, 60))))
        text = text[:start] + draw(st.sampled_from(PIECES) | st.text(max_size=3) | st.just("")) + text[end:]
    return text


@settings(max_examples=150, deadline=None)
@given(mutated() | st.text())
@example("\ud800")
@example("edition 2026.1 h")
@example("#\ud800")
@example('test "\ud800" {}')
def test_any_text_is_formatted_or_refused(text: str) -> None:
    findings = Findings("policy.tide")
    parse_policy(Source("policy.tide", text), findings)
    if findings.items:
        with pytest.raises(FormatError) as refused:
            format_text(text, "policy.tide")
        assert sorted(refused.value.diagnostics, key=repr) == sorted(findings.items, key=repr)
    else:
        keeps_its_promises(text, format_text(text))
