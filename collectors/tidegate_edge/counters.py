"""What a collector did since its start."""

from dataclasses import dataclass

from .sockets.part import Part


@dataclass(slots=True)
class Counters:
    """Totals; printed when the collector ends, and shown as metrics while it runs.

    Attributes:
        polls: done and written.
        skipped: that were due while the poll before was still running.
        spared: that were left out to stay below `--max-cpu`.
        rows: written.
        damaged: messages of the kernel that could not be read.
        left_out: sockets beyond `--max-sockets`.
        passed_over: sockets that are excluded or not in the sample.
        retries: dumps repeated because the kernel lost or changed part of them.
        interrupted: dumps kept although the kernel marked them as inconsistent.
        namespaces: read now; the only one that falls. Zero unless all are read.
        namespaces_gone: that were let go of because nothing but the collector held them.
        namespaces_failed: polls or openings of a namespace that failed.
        namespaces_left_out: seen beyond the most that are read, each time it was looked.
    """

    polls: int = 0
    skipped: int = 0
    spared: int = 0
    rows: int = 0
    damaged: int = 0
    left_out: int = 0
    passed_over: int = 0
    retries: int = 0
    interrupted: int = 0
    namespaces: int = 0
    namespaces_gone: int = 0
    namespaces_failed: int = 0
    namespaces_left_out: int = 0

    def add(self, part: Part) -> None:
        """Count what was written of a poll; `polls` is the caller's to count."""
        self.rows += len(part.rows)
        self.damaged += part.damaged
        self.left_out += part.left_out
        self.passed_over += part.passed_over
        self.retries += part.retries
        self.interrupted += part.interrupted

    @property
    def losses(self) -> int:
        """Whatever a reader of the rows should hear about."""
        return (
            self.damaged
            + self.left_out
            + self.interrupted
            + self.namespaces_failed
            + self.namespaces_left_out
        )
