"""Where comments stand in the canonical layout."""

from textwrap import dedent

from tidegate_dsl.format import format_text


def formatted(text: str) -> str:
    return format_text(dedent(text))


class TestComments:
    def test_alone_are_indented_like_the_clauses_of_their_block(self) -> None:
        assert formatted("""\
            apply a {
            # first
            to s
                # of the override
                  override f {
            # in it
            limit 5 prefixes per pop
            # last in it
            }
                    # last
            }
              # behind
            """) == dedent("""\
            apply a {
              # first
              to       s
              # of the override
              override f {
                # in it
                limit    5 prefixes per pop
                # last in it
              }
              # last
            }
            # behind
            """)

    def test_behind_adjacent_lines_stand_in_one_column(self) -> None:
        assert formatted("""\
            select s { # header
            hold 2h# a
            over 6h step 5m # b
            # alone
            exclude min_rtt < 10 ms # c

            exclude rtt < 9 ms # d
            require windows >= 5
            rank top 5% of pop # e
            } # end
            """) == dedent("""\
            select s {  # header
              hold     2h          # a
              over     6h step 5m  # b
              # alone
              exclude  min_rtt < 10 ms  # c

              exclude  rtt < 9 ms  # d
              require  windows >= 5
              rank     top 5% of pop  # e
            }  # end
            """)

    def test_behind_code_keep_a_distance_that_the_author_chose(self) -> None:
        assert formatted("""\
            select s {
              hold 2h              # a
              over 6h step 5m      # b

              rank     top 5% of pop                        # the column that other lines have too
            }
            """) == dedent("""\
            select s {
              hold     2h              # a
              over     6h step 5m      # b

              rank     top 5% of pop                        # the column that other lines have too
            }
            """)

    def test_stay_with_their_clause_where_a_line_is_cut(self) -> None:
        assert formatted("""\
            select s { hold 2h # of hold
            # of over
            over 6h step 5m } # of over too
            select t {
            # of u
            } select u { # of u too
            } # end
            """) == dedent("""\
            select s {
              hold     2h  # of hold
              # of over
              over     6h step 5m  # of over too
            }

            select t {
            }

            # of u
            select u {  # of u too
            }  # end
            """)
