"""Times as the contracts write them: UTC, to the second."""

from datetime import UTC, datetime


def now() -> datetime:
    """This second."""
    return datetime.now(UTC).replace(microsecond=0)


def format_time(moment: datetime) -> str:
    """Such as 2026-11-20T06:00:00Z."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_time(text: str) -> datetime:
    """The inverse of `format_time`.

    Raises:
        ValueError: the text is of another form.
    """
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
