"""Input that can not be read at all: no policy to point into."""


class InputError(Exception):
    """A file that is missing, is not what it should be, or can not be read.

    Args:
        message: lower case, no full stop; names the file, the line where there is one, and the value.
        help: the way out, or None where the message says it.
    """

    def __init__(self, message: str, *, help: str | None = None) -> None:  # noqa: A002 - the word that the user sees
        super().__init__(message)
        self.message = message
        self.help = help


def unreadable(path: object, error: OSError) -> InputError:
    """The `InputError` of a file that the system does not give."""
    return InputError(f"can not read {path}: {(error.strerror or str(error)).lower()}")
