"""Taking tokens one by one, and saying what was expected where something else stands."""

from collections.abc import Collection, Sequence
from typing import Final

from tidegate_dsl.diagnostics import Edit, Findings, Fix, Span, advice, either, listed, replacement, spelling

from .lexer import NUMBER, Kind, Token
from .tree import Name, Quantity


class GiveUp(Exception):
    """The mistake is reported; leave this clause and go on behind it."""


def opens(token: Token) -> bool:
    """Whether this is a `{`, or a string without its closing quote that swallowed one."""
    return token.text == "{" or (token.kind is Kind.BROKEN and token.text.endswith("{"))


class Cursor:
    """A place in the tokens.

    `forms` is how the current clause is written; a mistake's help shows it.
    """

    def __init__(self, tokens: Sequence[Token], findings: Findings) -> None:
        self._tokens = tokens
        self._index = 0
        self._findings: Final = findings
        self.forms: tuple[str, ...] = ()

    @property
    def index(self) -> int:
        """How many tokens stand before the one that is next."""
        return self._index

    def go_to(self, index: int) -> None:
        """Go on at another token."""
        self._index = index

    @property
    def token(self) -> Token:
        """The token that is next."""
        return self._tokens[self._index]

    @property
    def last(self) -> Span:
        """The span of the token that was taken last."""
        return self._tokens[max(0, self._index - 1)].span

    def take(self) -> Token:
        """Take the next token, whatever it is; END is never passed."""
        token = self._tokens[self._index]
        if token.text or token.kind is not Kind.END:
            self._index += 1
        return token

    def skip_newlines(self) -> None:
        """Go to the next token that is no end of a line."""
        while self._tokens[self._index].kind is Kind.NEWLINE:
            self._index += 1

    def is_punctuation(self, text: str) -> bool:
        """Whether the next token is this punctuation."""
        token = self._tokens[self._index]
        return token.text == text and token.kind is Kind.PUNCTUATION

    def is_word(self, *texts: str) -> bool:
        """Whether the next token is one of these words."""
        token = self._tokens[self._index]
        return token.text in texts and token.kind is Kind.WORD

    def is_other_word(self, texts: Collection[str]) -> bool:
        """Whether the next token is a word, and none of these."""
        return self.token.kind is Kind.WORD and self.token.text not in texts

    def before(self, kind: Kind) -> bool:
        """Whether a token of this kind follows the next one."""
        return self._tokens[min(self._index + 1, len(self._tokens) - 1)].kind is kind

    @property
    def at_end(self) -> bool:
        """Whether the clause ends here: line, block or file."""
        token = self._tokens[self._index]
        return not token.text or self.is_punctuation("}")  # only NEWLINE and END have no text

    def opens_block(self) -> bool:
        """Whether a `{` stands in the rest of the line."""
        index = self._index
        while self._tokens[index].kind not in (Kind.NEWLINE, Kind.END):
            if opens(self._tokens[index]):
                return True
            index += 1
        return False

    @property
    def words_ahead(self) -> set[str]:
        """The words in the rest of the line."""
        index, words = self._index, set[str]()
        while self._tokens[index].kind not in (Kind.NEWLINE, Kind.END):
            if self._tokens[index].kind is Kind.WORD:
                words.add(self._tokens[index].text)
            index += 1
        return words

    @property
    def reported(self) -> bool:
        """Whether something in the rest of the line is no token, which is reported already."""
        index = self._index
        while self._tokens[index].kind not in (Kind.NEWLINE, Kind.END, Kind.BROKEN):
            index += 1
        return self._tokens[index].kind is Kind.BROKEN

    def closes_within(self, blocks: Collection[str]) -> bool:
        """Whether the next brace is a `}` behind which neither one of `blocks` nor the end follows."""
        index = self._index + self.is_punctuation("{")
        while self._tokens[index].kind is not Kind.END and self._tokens[index].text not in ("{", "}"):
            index += 1
        if self._tokens[index].text != "}":
            return False
        index += 1
        while self._tokens[index].kind is Kind.NEWLINE:
            index += 1
        return self._tokens[index].kind is not Kind.END and self._tokens[index].text not in blocks

    def fail(self, expected: str, *, way_out: str | None = None, fix: Fix | None = None) -> GiveUp:
        """Report that `expected` should stand here; raise what this returns."""
        token = self.token
        if self.reported:
            return GiveUp()
        if self.at_end and not self.is_punctuation("}"):
            span, found = self.last.end, "the line ends"
        else:
            span, found = token.span, f"found `{token.text}`"
        self._findings.error(
            "P103",
            f"expected {expected}, {found}",
            span,
            help=way_out or (f"write {either(self.forms)}" if self.forms else None),
            fix=fix,
        )
        return GiveUp()

    def words(self, *texts: str) -> None:
        """Take these words, one after the other."""
        for text in texts:
            if not self.is_word(text):
                raise self.fail(f"`{text}`", fix=self._spelled((text,)))
            self.take()

    def _spelled(self, options: Collection[str]) -> Fix | None:
        """The fix of a mistyped word."""
        token = self.token
        return spelling(token.span, token.text, options) if token.kind is Kind.WORD else None

    def _turned(self, allowed: Collection[str]) -> Fix | None:
        """The fix of a comparison whose signs stand the wrong way round."""
        token = self.token
        right = token.text[::-1] if token.kind is Kind.PUNCTUATION else ""
        return replacement(token.span, right) if right in allowed else None

    def brace_follows(self) -> bool:
        """Whether the first token behind the ends of lines is a `{`."""
        index = self._index
        while self._tokens[index].kind is Kind.NEWLINE:
            index += 1
        return opens(self._tokens[index])

    def brace_on_next_line(self) -> bool:
        """Whether the next line starts with `{`."""
        index = self._index
        while self._tokens[index].kind not in (Kind.NEWLINE, Kind.END):
            index += 1
        return opens(self._tokens[min(index + 1, len(self._tokens) - 1)])

    def missing_at_end(self, text: str) -> Fix | None:
        """The fix that writes `text` at the end of the line, where the line ends too early."""
        if self.token.kind is not Kind.NEWLINE:
            return None
        return Fix(f"write `{text}`", (Edit(self.last.end, f" {text}"),))

    def punctuation(self, text: str) -> None:
        """Take this punctuation."""
        if not self.is_punctuation(text):
            raise self.fail(f"`{text}`")
        self.take()

    def name(self, what: str) -> Name:
        """Take any word; `what` says what it names."""
        if self.token.kind is not Kind.WORD:
            raise self.fail(what)
        token = self.take()
        return Name(token.text, token.span)

    def choice(self, options: Collection[str], expected: str, *, what: str = "one of") -> Name:
        """Take one of a few words; `what` stands before their list in the help."""
        if self.is_word(*options):
            return self.name(expected)
        if self.token.kind is Kind.WORD:
            way_out = advice(self.token.text, options, what=what)
            raise self.fail(expected, way_out=way_out, fix=self._spelled(options))
        raise self.fail(f"{expected}: {listed(options)}")

    def string(self, what: str) -> Name:
        """Take a string; its text comes without the quotes."""
        if self.token.kind is not Kind.STRING:
            raise self.fail(what)
        token = self.take()
        return Name(token.text[1:-1], token.span)

    def prefix(self) -> Name:
        """Take what looks like a prefix; the checker reads it."""
        if self.token.kind is not Kind.ADDRESS:
            raise self.fail("a prefix such as `192.0.2.0/24`")
        token = self.take()
        return Name(token.text, token.span)

    def length(self, what: str) -> Quantity:
        """Take a prefix length such as `/24`."""
        if self.token.kind is not Kind.LENGTH:
            raise self.fail(what)
        token = self.take()
        return Quantity(int(token.text[1:]), 0, None, token.text, token.span)

    def quantity(self, what: str, *, before: Collection[str] = ()) -> Quantity:
        """Take a number and its unit.

        The word behind a number is its unit unless it is one of `before`, the words that may follow the value:
        so a unit that was forgotten and one that is not known are told apart.
        """
        token = self._number(what)
        parts = NUMBER.fullmatch(token.text)
        assert parts is not None  # noqa: S101 - the lexer used the same pattern
        whole, fraction, unit = parts.groups(default="")
        text, span = token.text, token.span
        if not unit and self.is_punctuation("%"):
            unit, text, span = "%", f"{text}%", span.to(self.take().span)
        elif not unit and self.is_other_word(before):
            unit = self.token.text
            text, span = f"{text} {unit}", span.to(self.take().span)
        return Quantity(int(whole + fraction), len(fraction), unit or None, text, span)

    def count(self, what: str) -> Quantity:
        """Take a number that has no unit."""
        if self.token.kind is Kind.NUMBER and not self.token.text.isdigit():
            raise self.fail(f"{what}, a whole number without a unit")
        token = self._number(what)
        return Quantity(int(token.text), 0, None, token.text, token.span)

    def _number(self, what: str) -> Token:
        """Take a number that no comma parts: `0,25` and `1,000` are none, and no list of the language has numbers."""
        if self.token.kind is not Kind.NUMBER:
            raise self.fail(what)
        token = self.take()
        if token.text[-1].isdigit() and self._touches(token, ",") and self.before(Kind.NUMBER):
            raise self.fail(
                "a number without a comma", way_out="write `0.25` with a point, and `1000` without a sign"
            )
        return token

    def _touches(self, token: Token, text: str) -> bool:
        """Whether the next token is `text` and stands right behind the one that was taken."""
        return self.token.text == text and self.token.span.start == token.span.end

    def comparison(self, *allowed: str) -> str:
        """Take a comparison."""
        if self.token.kind is Kind.PUNCTUATION and self.token.text in allowed:
            return self.take().text
        if len(allowed) == 1:
            raise self.fail(f"`{allowed[0]}`", fix=self._turned(allowed))
        raise self.fail(
            "a comparison", way_out=f"compare with one of {listed(allowed)}", fix=self._turned(allowed)
        )

    def time(self) -> Name:
        """Take what looks like a time; the checker reads it."""
        if self.token.kind is not Kind.TIME:
            raise self.fail("a time such as `2026-12-01` or `2026-12-01T06:00Z`")
        token = self.take()
        return Name(token.text, token.span)
