"""The one exception that a command on an edge host turns into a message and an exit code."""

from typing import Final

ANSWER_IS_NO: Final = 1
BAD_INPUT: Final = 2
MISSING_PART: Final = 3


class Failure(Exception):
    """What went wrong, in the user's words, and the way out.

    Args:
        message: lower case, no full stop; names the file, the place and the value.
        help: the way out, one sentence, or None where the message says it.
        exit_code: 1 the answer is no, 2 input that cannot be read, 3 something needed is missing (CONTRIBUTING.md).
    """

    def __init__(self, message: str, *, help: str | None = None, exit_code: int = BAD_INPUT) -> None:  # noqa: A002
        super().__init__(message)
        self.message = message
        self.help = help
        self.exit_code = exit_code
