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
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tidegate_lab.guest import GATEWAY, READY, SAMPLE
from tidegate_lab.namespaces import configure, run

_BOOT_S: Final = 120
_END_S: Final = 30
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


@dataclass(frozen=True, slots=True)
class Guest:
    """A running guest.

    Attributes:
        log: what it says, a file that stays where the experiment fails.
    """

    log: Path
    _process: "subprocess.Popen[bytes]"

    def samples(self) -> list[Sample]:
        """All that it has told so far."""
        told = self.log.read_text(errors="replace").splitlines(keepends=True)
        return [_sample(line) for line in told if line.startswith(SAMPLE) and line.endswith("]\n")]

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


@contextmanager
def guest(namespace: str, package: Path) -> Iterator[Guest]:
    """A User Mode Linux behind a TAP device of a namespace, while the block runs.

    Its root is this machine's, to be read only; it ends with the namespace at the latest. No wait for it is without
    end: an error that leaves the block has a note that names the guest's log, and the log stays.

    Args:
        namespace: that routes for it.
        package: directory in which Debian's user-mode-linux is unpacked; `/` where it is installed.

    Raises:
        RuntimeError: the package is not there, or the guest did not start or end within its time.
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
    with tempfile.TemporaryDirectory() as directory, _log() as log:
        # A file and no pipe: a helper of the guest's that outlives it would keep a pipe open.
        with log.open("wb") as console:
            process = subprocess.Popen(
                _argv(namespace, package / _BINARY, modules[-1], directory),
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            _await_ready(log, process)
            yield Guest(log, process)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # its helpers too
            _await_end(process)


@contextmanager
def _log() -> Iterator[Path]:
    descriptor, name = tempfile.mkstemp(prefix="tidegate-guest-", suffix=".log")
    os.close(descriptor)
    log = Path(name)
    try:
        yield log
    except Exception as error:
        error.add_note(f"what the guest said is in {log}")
        raise
    log.unlink()


def _argv(namespace: str, binary: Path, modules: Path, directory: str) -> list[str]:
    return [
        *("ip", "netns", "exec", namespace, "chrt", "-f", "40", str(binary), "mem=512M"),
        *("rootfstype=hostfs", "rootflags=/", "ro", "vec0:transport=tap,ifname=guest,depth=128"),
        *(f"uml_dir={directory}", "con=null", "con0=fd:0,fd:1", "ssl=null", "quiet"),
        f"PYTHONPATH={os.pathsep.join(path for path in sys.path if path)}",
        "PYTHONDONTWRITEBYTECODE=1",
        *(f"init={sys.executable}", "--", "-m", "tidegate_lab.guest", str(modules)),
    ]


def _sample(line: str) -> Sample:
    judged, starved, share = json.loads(line.removeprefix(SAMPLE))
    return Sample(bool(judged), bool(starved), share)


def _await_ready(log: Path, process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + _BOOT_S
    while READY not in log.read_text(errors="replace"):
        if process.poll() is not None:
            raise RuntimeError(f"the guest ended with code {process.returncode} before it was ready")
        if time.monotonic() > deadline:
            raise RuntimeError(f"the guest was not ready within {_BOOT_S} s")
        time.sleep(0.05)


def _await_end(process: "subprocess.Popen[bytes]") -> None:
    try:
        process.wait(timeout=_END_S)
    except subprocess.TimeoutExpired as error:
        raise RuntimeError(f"the guest was killed and did not end within {_END_S} s") from error
