"""`kill -9` between any two writes of closing a window and keeping its history; the next run mends what it left."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from test_history import RATES, SELECT, found, is_kept, keep, mark, sampled
from tidegate.telemetry.migrate import migrate
from tidegate.telemetry.store import open_store
from tidegate.windows import close

CRASHING = """
import os, signal, sys
sys.path.insert(0, sys.argv[3])
from test_history import RATES, SELECT, keep, mark, sampled
from tidegate.telemetry.migrate import migrate
from tidegate.telemetry.store import open_store
from tidegate.windows import close

with open_store("chdb://" + sys.argv[1]) as client:
    migrate(client)
    sampled(client, RATES)
    close(client, SELECT, mark(len(RATES) - 1))
    keep(client, SELECT, mark(len(RATES) - 1))
    left = int(sys.argv[2])

    def dying(write):
        def written(*args, **more):
            global left
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return write(*args, **more)

        return written

    client.command, client.insert = dying(client.command), dying(client.insert)
    close(client, SELECT, mark(len(RATES)))
    keep(client, SELECT, mark(len(RATES)))
"""


@pytest.mark.timeout(900)  # each kill is a process and a store of its own
def test_a_run_killed_between_any_two_writes_is_mended_by_the_next(tmp_path):
    at, kept = mark(len(RATES)), []
    with open_store(f"chdb://{tmp_path / 'whole'}") as client:
        migrate(client)
        sampled(client, RATES)
        close(client, SELECT, at)
        expected = found(client, SELECT, at)
    for writes in range(20):
        store = tmp_path / f"store{writes}"
        run = subprocess.run(
            [sys.executable, "-c", CRASHING, str(store), str(writes), str(Path(__file__).parent)],
            capture_output=True, text=True, timeout=240, check=False,
        )  # fmt: skip
        if run.returncode == 0:
            break
        assert run.returncode == -signal.SIGKILL, run.stderr
        with open_store(f"chdb://{store}") as client:
            close(client, SELECT, at)
            assert found(client, SELECT, at) == expected
            keep(client, SELECT, at)
            kept.append(is_kept(client, at))
            assert found(client, SELECT, at) == expected
    assert run.returncode == 0
    assert len(kept) >= 4  # windows, their registration, the history, its registration
    assert all(kept)
