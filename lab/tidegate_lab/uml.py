"""A sender in User Mode Linux, and slices of time for its whole kernel, as a hypervisor gives them."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tidegate_lab.guest import GATEWAY, READY, SAMPLE
from tidegate_lab.namespaces import configure, run

_BOOT_S: Final = 120
_BINARY: Final = "usr/bin/linux.uml"
_MODULES: Final = "usr/lib/uml/modules/*/kernel"


@dataclass(frozen=True, slots=True)
class Sample:
    """One look of the guest at its sending socket.

    Attributes:
        judged: BBR in its steady state, with bytes waiting: the signature can be told.
        starved: it shows it.
        share: bytes in flight over bandwidth x min_rtt; None: not BBR, or not measured yet.
    """

    judged: bool
    starved: bool
    share: float | None


@dataclass(slots=True)
class Guest:
    """A running guest; `samples` grows as it tells."""

    _process: "subprocess.Popen[str]"
    samples: list[Sample] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    @contextmanager
    def sliced(self, on_ms: float, off_ms: float) -> Iterator[None]:
        """Let the guest's kernel run for `on_ms`, stand for `off_ms`, and so on; 0: never stand."""
        over = threading.Event()

        def slices() -> None:
            due = time.monotonic()
            while not over.is_set():
                for number, length_ms in ((signal.SIGCONT, on_ms), (signal.SIGSTOP, off_ms)):
                    self._process.send_signal(number)
                    due += length_ms / 1000
                    time.sleep(max(due - time.monotonic(), 0))

        thread = threading.Thread(target=slices if off_ms else lambda: None, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
            self._process.send_signal(signal.SIGCONT)

    def _listen(self) -> None:
        for line in self._process.stdout or ():
            self.said.append(line)
            with suppress(ValueError):
                if line.startswith(SAMPLE):
                    judged, starved, share = json.loads(line.removeprefix(SAMPLE))
                    self.samples.append(Sample(bool(judged), bool(starved), share))


@contextmanager
def guest(namespace: str, package: Path) -> Iterator[Guest]:
    """A User Mode Linux behind a TAP device of a namespace, while the block runs.

    Its root is this machine's, to be read only; it ends with the namespace at the latest.

    Args:
        namespace: that routes for it.
        package: directory in which Debian's user-mode-linux is unpacked; `/` where it is installed.

    Raises:
        RuntimeError: the package is not there, or the guest did not start; what it said is in a note.
    """
    modules = sorted(package.glob(_MODULES))
    if not modules or not (package / _BINARY).exists():
        raise RuntimeError(
            f"no user-mode-linux in {package}: `apt-get install user-mode-linux`, or --package DIR"
        )
    configure(
        namespace,
        ["tuntap add dev guest mode tap", f"address add {GATEWAY}/24 dev guest", "link set guest up"],
    )
    run("ip", "netns", "exec", namespace, "sysctl", "-qw", "net.ipv4.ip_forward=1")
    with tempfile.TemporaryDirectory() as directory:
        argv = ["ip", "netns", "exec", namespace, "chrt", "-f", "40", str(package / _BINARY), "mem=512M"]
        argv += ["rootfstype=hostfs", "rootflags=/", "ro", "vec0:transport=tap,ifname=guest,depth=128"]
        argv += [f"uml_dir={directory}", "con=null", "con0=fd:0,fd:1", "ssl=null", "quiet"]
        argv += [
            f"PYTHONPATH={os.pathsep.join(path for path in sys.path if path)}",
            "PYTHONDONTWRITEBYTECODE=1",
        ]
        argv += [f"init={sys.executable}", "--", "-m", "tidegate_lab.guest", str(modules[-1])]
        with subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        ) as process:
            made = Guest(process)
            threading.Thread(target=made._listen, daemon=True).start()
            try:
                _await_ready(made, process)
                yield made
            finally:
                os.killpg(process.pid, signal.SIGKILL)  # its helpers too: they hold its output open


def _await_ready(made: Guest, process: "subprocess.Popen[str]") -> None:
    deadline = time.monotonic() + _BOOT_S
    while not any(READY in line for line in made.said):
        if process.poll() is not None or time.monotonic() > deadline:
            error = RuntimeError("the guest did not start")
            error.add_note("".join(made.said[-20:]))
            raise error
        time.sleep(0.05)
