"""How a suite runs in several workers: what is shared is made once, and real clocks have the machine alone.

A worker that dies or hangs ends the run, and a run that fails ends with the names of what failed.
"""

import fcntl
import math
import os
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from xdist.scheduler import LoadFileScheduling, LoadGroupScheduling

from tests.kit.leaks import Leaks
from tests.kit.own_time import OwnTime
from tests.kit.stores import Stores

#: When no test begins any more, in seconds since 1970, if it is set.
_UNTIL = float(os.environ.get("UNTIL", "inf"))
#: Of a failing test's report, at the end of a run.
_LAST_LINES = 12


def install(config: pytest.Config) -> None:
    """Add what a run of the tests needs to pytest's plugins."""
    own_time = OwnTime()
    config.pluginmanager.register(own_time, "own-time")
    config.pluginmanager.register(Leaks(), "leaks")
    config.pluginmanager.register(Stores(), "stores")
    run = Worker(config, own_time) if hasattr(config, "workerinput") else Controller()
    config.pluginmanager.register(run, "run")


class _Ending:
    """Where a worker dies, nothing of what it had left is run.

    xdist gives it to others, and first of all the test by which that one died:
    https://github.com/pytest-dev/pytest-xdist/issues/1378.
    """

    assigned_work: dict[Any, dict[str, dict[str, bool]]]

    def remove_node(self, node: Any) -> str | None:
        left = self.assigned_work.pop(node)
        return next((test for unit in left.values() for test, is_done in unit.items() if not is_done), None)


class ByFile(_Ending, LoadFileScheduling):  # type: ignore[misc]
    """Gives the tests of a file to one worker: many that take little time."""


class ByGroup(_Ending, LoadGroupScheduling):  # type: ignore[misc]
    """Gives tests to workers one by one, but all of an `xdist_group` to one: few that take long."""


class Controller:
    """What is done once for a run, next to its workers or without any."""

    def __init__(self) -> None:
        descriptor, self._lock = tempfile.mkstemp(prefix="alone-")
        os.close(descriptor)
        self._reports: list[pytest.TestReport | pytest.CollectReport] = []
        self._workers: dict[str, dict[str, Any]] = {}

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        node.workerinput["alone"] = self._lock

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> Any:
        config.option.loadscopereorder = False  # workers have put them in order
        scheduler = {"loadfile": ByFile, "loadgroup": ByGroup}.get(config.getoption("dist"))
        return None if scheduler is None else scheduler(config, log)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        self._workers[node.gateway.id] = getattr(node, "workeroutput", {})

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._reports.append(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._reports.append(report)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        held = [f"{name} {given['descriptors']}" for name, given in sorted(self._workers.items()) if given]
        slowest = Counter[str]()
        for given in self._workers.values():
            slowest.update(given.get("slowest", {}))
        if held:
            terminalreporter.write_line(f"Descriptors at the end: {', '.join(held)}")
            for test, seconds in slowest.most_common(5):
                terminalreporter.write_line(f"{seconds:5.2f} s of its own: {test}")

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Iterator[None]:
        result = yield
        terminal = session.config.pluginmanager.getplugin("terminalreporter")
        for report in self._reports if terminal else ():
            terminal.write_sep("_", f"FAILED {report.nodeid}", red=True)
            for line in report.longreprtext.splitlines()[-_LAST_LINES:]:
                terminal.write_line(line)
        os.unlink(self._lock)
        return result


class Worker:
    """What each worker does."""

    def __init__(self, config: Any, own_time: OwnTime) -> None:
        self._output = config.workeroutput
        self._lock = os.open(config.workerinput["alone"], os.O_RDWR | os.O_CLOEXEC)
        self._own_time = own_time

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> Iterator[None]:
        """What shares a fixture is a group. What real clocks decide comes last, and what is large first.

        So all workers end together. Where some may not run at all, they stay in the order that was asked for.
        """
        for item in items if config.getoption("loadgroup") else ():
            if item.get_closest_marker("xdist_group") is None and _shares(item):
                item.add_marker(pytest.mark.xdist_group(item.path.stem))
        result = yield
        size = Counter(map(_unit, items))
        if math.isinf(_UNTIL):
            items.sort(key=lambda item: (-size[_unit(item)], _unit(item)))
        items.sort(key=_is_timed)
        return result

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self) -> None:
        if time.time() > _UNTIL:
            pytest.skip("no time was left for it")

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """A lock of a process, which its children do not have, and which ends with it."""
        fcntl.lockf(self._lock, fcntl.LOCK_EX if _is_timed(item) else fcntl.LOCK_SH)
        try:
            return (yield)
        finally:
            fcntl.lockf(self._lock, fcntl.LOCK_UN)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        self._output["descriptors"] = len(os.listdir("/proc/self/fd"))
        self._output["slowest"] = self._own_time.slowest


def _is_timed(item: pytest.Item) -> bool:
    return item.get_closest_marker("timing") is not None


def _shares(item: pytest.Item) -> bool:
    """Whether it has a fixture that others of its file or class have as well."""
    fixtures: dict[str, Any] = getattr(item, "_fixtureinfo").name2fixturedefs  # noqa: B009
    return any(one.scope in {"class", "module", "package"} for found in fixtures.values() for one in found)


def _unit(item: pytest.Item) -> str:
    group = item.get_closest_marker("xdist_group")
    return str(group.args[0] if group and group.args else item.path)
