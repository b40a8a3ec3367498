"""The canonical layout, rule by rule: what goes in and what comes out."""

from pathlib import Path
from textwrap import dedent

import pytest
from tidegate_dsl.format import FormatError, format_text

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.tide"))


def formatted(text: str) -> str:
    return format_text(dedent(text))


def is_canonical(text: str) -> bool:
    return formatted(text) == dedent(text)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_the_examples_are_formatted(path: Path) -> None:
    text = path.read_bytes().decode()
    assert format_text(text) == text


class TestColumns:
    def test_arguments_start_in_one_column_at_least_the_ninth(self) -> None:
        assert (
            formatted("""\
                initcwnd v6 {
                for ipv6
                   in\tall
                      set initcwnd 20 segments
                }
                """)
            == "initcwnd v6 {\n  for      ipv6\n  in       all\n  set      initcwnd 20 segments\n}\n"
        )

    def test_a_longer_keyword_pushes_the_column_out_in_its_own_block_only(self) -> None:
        assert is_canonical("""\
            guard g {
              watch      a
              on_failure freeze
            }

            experiment e {
              on         a
              switchback 6h
            }

            test "t" {
              expect   s includes 192.0.2.0/24
            }
            """)

    def test_the_body_of_an_override_has_a_column_of_its_own(self) -> None:
        assert formatted(
            "apply a {\nto s\noverride fra2 {\nwhen transfer_size>=1MB\nlimit 5 prefixes per pop\n}\n}"
        ) == dedent("""\
            apply a {
              to       s
              override fra2 {
                when     transfer_size >= 1 MB
                limit    5 prefixes per pop
              }
            }
            """)

    def test_clauses_outside_of_blocks_have_no_column(self) -> None:
        assert formatted('edition   2026.1\n  inventory\t"a  b"') == 'edition 2026.1\ninventory "a  b"\n'


class TestBlanks:
    @pytest.mark.parametrize(
        ("written", "canonical"),
        [
            ("over 6 h step 5   m", "over     6h step 5m"),
            ("exclude min_rtt<10ms", "exclude  min_rtt < 10 ms"),
            ("exclude min_rtt >10 us  leave>8us", "exclude  min_rtt > 10 us leave > 8 us"),
            ("rank top 2 % of pop and rtt>5ms", "rank     top 2% of pop and rtt > 5 ms"),
            ("rank delivery_rate<5Mbps", "rank     delivery_rate < 5 Mbps"),
            ("rank cwnd<10segments", "rank     cwnd < 10 segments"),
            ("from traffic client where not  app_limited", "from     traffic client where not app_limited"),
            ("exclude bytes_sent > 0100.50B", "exclude  bytes_sent > 0100.50 B"),
            ("measure rtt by prefix  /24\t/56", "measure  rtt by prefix /24 /56"),
            ("over 6hours step 5m", "over     6hours step 5m"),  # no unit, so it stays as it stands
            ("hold 6 hours", "hold     6 hours"),
        ],
    )
    def test_between_the_tokens_of_a_clause(self, written: str, canonical: str) -> None:
        assert format_text(f"select s{{\n{written}\n}}") == f"select s {{\n  {canonical}\n}}\n"

    def test_around_a_comma(self) -> None:
        text = "initcwnd a {\nfor ipv4 ,2001:db8::/32,192.0.2.0/24\nin a,b except c , d\n}"
        assert format_text(text) == dedent("""\
            initcwnd a {
              for      ipv4, 2001:db8::/32, 192.0.2.0/24
              in       a, b except c, d
            }
            """)

    def test_of_strings_and_comments_are_the_authors(self) -> None:
        text = 'test "a  \t b,c" {\n  #  x\t y ,z\n  given    telemetry "a  %.pb"  #\tw  x\n}\n'
        assert format_text(text) == text


class TestLines:
    def test_end_in_line_feeds_without_blanks_and_start_without_a_byte_order_mark(self) -> None:
        text = "\ufeffedition 2026.1  \r\n\r\n# c \t\r\nselect s {\t\r\n  hold 2h\r\n}"
        assert format_text(text) == "edition 2026.1\n\n# c\nselect s {\n  hold     2h\n}\n"

    @pytest.mark.parametrize("text", ["", "\n\n", " \t\r\n", "\ufeff"])
    def test_of_nothing_are_none(self, text: str) -> None:
        assert format_text(text) == ""

    def test_empty_ones_become_one_and_none_at_the_ends(self) -> None:
        assert formatted("""\


            edition 2026.1


            inventory "x"


            select s {


              hold     2h


              over     6h step 5m

            }


            """) == dedent("""\
            edition 2026.1

            inventory "x"

            select s {
              hold     2h

              over     6h step 5m
            }
            """)

    def test_one_empty_one_stands_before_a_block_and_the_comments_that_belong_to_it(self) -> None:
        assert formatted("""\
            inventory "x"
            # of s
            # and more of s
            select s {
            }
            select t {
            }
            # alone, behind t

            select u {
            }
            # the end
            """) == dedent("""\
            inventory "x"

            # of s
            # and more of s
            select s {
            }

            select t {
            }
            # alone, behind t

            select u {
            }
            # the end
            """)

    def test_a_short_block_stays_on_its_line_and_a_long_one_does_not_become_short(self) -> None:
        assert is_canonical("""\
            apply a {
              to       s
              override fra2 { when transfer_size >= 250 KB }
              override ams1 {
                limit    5 prefixes per pop
              }
            }

            select s { hold 2h }

            apply b { override fra2 { limit 5 prefixes per pop } }
            """)

    @pytest.mark.parametrize(
        ("written", "canonical"),
        [
            ("select s{hold 2h}", "select s { hold 2h }\n"),
            ("select s{}", "select s {\n}\n"),
            ("apply a{override f{}}", "apply a {\n  override f {\n  }\n}\n"),
            ("select s{hold 2h\n}", "select s {\n  hold     2h\n}\n"),
            (
                "select s{\nhold 2h}select t{over 6h step 5m}",
                "select s {\n  hold     2h\n}\n\nselect t { over 6h step 5m }\n",
            ),
            (
                "apply a{\nto s\noverride f{limit 5 prefixes per pop}}",
                "apply a {\n  to       s\n  override f { limit 5 prefixes per pop }\n}\n",
            ),
        ],
    )
    def test_that_say_several_things_are_cut(self, written: str, canonical: str) -> None:
        assert format_text(written) == canonical


class TestRefusal:
    @pytest.mark.parametrize(
        ("text", "code", "line"),
        [
            ('edition 2026.1\ninventory "x', "L001", 2),
            ("select s {\n  hold 2h\n", "P104", 1),
            ("select s {\n  hold\n}\n", "P103", 2),
            ("}\n", "P105", 1),
        ],
    )
    def test_names_the_mistake_and_its_place(self, text: str, code: str, line: int) -> None:
        with pytest.raises(FormatError) as refused:
            format_text(text, "edge.tide")
        (found,) = refused.value.diagnostics
        assert (found.path, found.code, found.span.line) == ("edge.tide", code, line)
        assert refused.value.source.text == text

    def test_is_not_for_what_only_the_checker_refuses(self) -> None:
        text = "apply a {\n  to       nobody\n  in       nowhere\n  limit    0 prefixes per pop\n}\n"
        assert format_text(text) == text
