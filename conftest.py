"""What every suite shares: tests that need root say so, and in CI a skip is a failure."""

import os
from pathlib import Path

import pytest

# `make` puts the tools that it built on the path; so does a bare `pytest`.
os.environ["PATH"] = f"{Path(__file__).parent / 'build/bin'}{os.pathsep}{os.environ['PATH']}"

STRICT = os.environ.get("TIDEGATE_NO_SKIPS") == "1"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what needs root where there is none."""
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
