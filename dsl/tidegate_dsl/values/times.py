"""Times of the language: `2026-12-01` and `2026-12-01T06:00Z`, always UTC."""

from datetime import UTC, datetime

from tidegate_dsl.diagnostics import Findings
from tidegate_dsl.syntax import tree
from tidegate_dsl.vocabulary import YEARS


def check_time(name: tree.Name, findings: Findings) -> datetime | None:
    """The moment, a date being its first; None where it is reported."""
    try:
        moment = datetime.fromisoformat(name.text).replace(tzinfo=UTC)
    except ValueError:
        findings.error(
            "T109",
            f"there is no time `{name.text}`",
            name.span,
            help="write a date such as `2026-12-01`, or a time in UTC such as `2026-12-01T06:00Z`",
        )
        return None
    if not YEARS.low <= moment.year <= YEARS.high:
        findings.error(
            "T105",
            f"the year of `{name.text}` is out of range",
            name.span,
            help=f"write a year between {YEARS.low} and {YEARS.high}",
        )
        return None
    return moment
