"""What a collector did since its start."""

from dataclasses import dataclass

from .sockets.poll import Poll


@dataclass(slots=True)
class Counters:
    """Totals; printed when the collector ends.

    Attributes:
        polls: done and written.
        skipped: that were due while the poll before was still running.
        rows: written.
        damaged: messages of the kernel that could not be read.
        left_out: sockets beyond `--max-sockets`.
        retries: dumps thrown away because the kernel lost or changed part of them.
        interrupted: polls kept although the kernel marked them as inconsistent.
    """

    polls: int = 0
    skipped: int = 0
    rows: int = 0
    damaged: int = 0
    left_out: int = 0
    retries: int = 0
    interrupted: int = 0

    def add(self, poll: Poll) -> None:
        """Count a poll that was written."""
        self.polls += 1
        self.rows += sum(map(len, poll.rows))
        self.damaged += poll.damaged
        self.left_out += poll.left_out
        self.retries += poll.retries
        self.interrupted += poll.interrupted

    @property
    def losses(self) -> int:
        """Whatever a reader of the rows should hear about."""
        return self.damaged + self.left_out + self.interrupted
