"""What every suite shares: tests that need root say so, in CI a skip is a failure, and a real Kafka broker."""

import os
import resource
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from tidegate_lab.broker import Broker, Jars

# `make` puts the tools that it built on the path; so does a bare `pytest`.
os.environ["PATH"] = f"{Path(__file__).parent / 'build/bin'}{os.pathsep}{os.environ['PATH']}"

# The embedded engine keeps some descriptors for every store that a process opened, and the suites open hundreds.
_SOFT, _HARD = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (max(_SOFT, min(_HARD, 8192)), _HARD))

# An example that a busy machine interrupts is no failure; pytest-timeout bounds a test as a whole.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")

ROOT = Path(__file__).parent
STRICT = os.environ.get("TIDEGATE_NO_SKIPS") == "1"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes longest, and skip what needs root where there is none."""
    items.sort(key=lambda item: item.get_closest_marker("hosts") is None)
    if os.geteuid() == 0:
        return
    mark = pytest.mark.skip(reason="needs root and network namespaces: run `make test` as root")
    for item in items:
        if item.get_closest_marker("root"):
            item.add_marker(mark)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """With TIDEGATE_NO_SKIPS=1 a run that skipped anything has failed."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    skipped = reporter.stats.get("skipped", []) if reporter else []
    if STRICT and skipped and session.exitstatus == pytest.ExitCode.OK:
        reporter.write_line(f"{len(skipped)} skipped: in CI a skip is a failure", red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture(scope="session")
def new_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], Broker]]:
    """Makes a running broker for a test that stops or kills it; at most one a module, each takes 5 to 10 s."""
    if not shutil.which("java") or not shutil.which("openssl"):
        pytest.skip("no java or openssl: `make system` installs them")
    fetched = subprocess.run([ROOT / "lab/kafka/get-kafka.sh", ROOT / "build/kafka"], check=False)
    if fetched.returncode:
        pytest.skip("the broker's jars could not be fetched: `make build/kafka`")
    made: list[Broker] = []

    def make() -> Broker:
        made.append(Broker(Jars(ROOT / "build/kafka"), tmp_path_factory.mktemp("broker") / "node"))
        made[-1].start()
        return made[-1]

    yield make
    for broker in made:
        broker.close()


@pytest.fixture(scope="session")
def kafka(new_broker: Callable[[], Broker]) -> Broker:
    """One running broker for the session. Leave it running, and name your topics so that no other test has them."""
    return new_broker()
