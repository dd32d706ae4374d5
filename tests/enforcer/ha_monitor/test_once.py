"""Killed at any point, or followed by another, the watch reports each alert and all-clear once."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ovirt_simulator.core.engine import Engine
from ovirt_simulator.core.settings import PROMPT
from ovirt_simulator.http.server import serve
from tests.configuration import write_configuration
from tests.enforcer.enforcer_process import EnforcerProcess
from tests.enforcer.ha_monitor.test_watch import STATE, reported
from tests.enforcer.launching import At
from tests.examples import some
from tests.proxy.running import eventually
from tests.scenarios.stage import START

#: These assertions depend on real time.
pytestmark = [pytest.mark.system, pytest.mark.timing]

SETTINGS = """\
[enforcer]
interval_seconds = 0.2
events_seconds = 3600
lease_seconds = 1.0
[enforcer.ha]
hold_seconds = 0.0
"""
#: All around what has an effect: what is written, what is sent, and what is noted as reported.
POINTS = (
    "before INSERT INTO ha_announcements",
    "after INSERT INTO ha_announcements",
    "before POST /events",
    "before UPDATE ha_announcements SET",
    "after UPDATE ha_announcements SET",
)
LEADS, LOCKED = "the leader from now on", "the lease cannot be looked at"
#: Sent, and not noted.
SENT = "after POST /events"
NOTED = "after UPDATE ha_announcements SET"


class World:
    def __init__(self, folder: Path, engine: Engine, url: str) -> None:
        self.engine = engine
        self._folder = folder
        self._configuration = write_configuration(folder, url, more=SETTINGS)

    @contextmanager
    def watch(self, name: str, where: str = "", *, deadly: bool = True) -> Iterator[EnforcerProcess]:
        at = At(where, 1, signal.SIGKILL if deadly else signal.SIGSTOP)
        found = EnforcerProcess(self._folder, name, self._configuration, at)
        try:
            yield found
        finally:
            found.kill()

    def set_safe(self, safe: bool) -> None:
        (self.engine.hosts.activate if safe else self.engine.hosts.deactivate)("h3")
        self.engine.advance(60)


@contextmanager
def world(folder: Path) -> Iterator[World]:
    folder.mkdir()
    engine = Engine.from_snapshot(STATE, clock=START, settings=PROMPT)
    server = serve(engine)
    try:
        yield World(folder, engine, server.api_url)
    finally:
        server.close()


def killed_and_followed(world: World, where: str) -> None:
    """Kill a watch at a point of its first alert; another one takes it up, and shows what comes then."""
    with world.watch("first", where) as first:
        eventually(lambda: first.killed)
        assert first.passed[-1] == where
    with world.watch("second") as second:
        eventually(lambda: reported(world.engine) == ["alert"] and NOTED in second.passed)
        world.set_safe(True)
        eventually(lambda: second.passed.count(NOTED) == 2)
        assert reported(world.engine) == ["alert", "normal"], second.said


@pytest.fixture
def unsafe(tmp_path: Path) -> Iterator[World]:
    with world(tmp_path / "world") as found:
        found.set_safe(False)
        yield found


def test_killed_before_it_could_note_that_it_was_reported(unsafe: World) -> None:
    killed_and_followed(unsafe, SENT)


def lived_through(world: World, where: str = "", *, deadly: bool = True) -> list[str]:
    """Kill or stop a watch at a point of an alert and its all-clear, if it comes there; another one goes on.

    One that was stopped wakes when the other leads, or waits for the database. Shows the points of the first.
    """
    world.set_safe(False)
    with world.watch("first", where, deadly=deadly) as first:
        eventually(lambda: first.halted or NOTED in first.passed)
        early = first.halted
        if not early:
            world.set_safe(True)
            eventually(lambda: first.halted or first.passed.count(NOTED) == 2)
        with world.watch("second") as second:
            if first.stopped:
                # It may hold the database's lock: some other thread of it may be amid a write as well.
                eventually(lambda: LEADS in second.said or LOCKED in second.said)
                first.wake()
            if early:
                eventually(lambda: reported(world.engine) == ["alert"])
                world.set_safe(True)
            eventually(lambda: reported(world.engine) == ["alert", "normal"])
            # Had anything been said twice, it would stand before this one.
            world.set_safe(False)
            eventually(lambda: reported(world.engine)[2:] == ["alert"])
        return first.passed


@pytest.mark.nightly
@pytest.mark.parametrize("deadly", [True, False], ids=["killed", "stopped and woken late"])
def test_at_whatever_statement_it_is_followed_by_another_all_is_reported_once(
    deadly: bool, tmp_path: Path
) -> None:
    """The tables are made in one transaction before that; tests of the store kill there."""
    with world(tmp_path / "unhurt") as found:
        points = [*dict.fromkeys(lived_through(found))]
    assert {*POINTS, SENT} <= {*points}
    chosen = points[points.index("before INSERT INTO leases") :]
    # To be stopped and woken takes longer, and is much the same around a statement.
    for number, where in enumerate(some(chosen) if deadly else some(chosen)[::2]):
        with world(tmp_path / str(number)) as found:
            assert where in lived_through(found, where, deadly=deadly)


def test_a_leader_that_is_stopped_before_it_sends_and_woken_late_reports_nothing_twice(unsafe: World) -> None:
    with unsafe.watch("first", "before POST /events", deadly=False) as first:
        eventually(lambda: first.stopped)
        with unsafe.watch("second") as second:
            eventually(lambda: reported(unsafe.engine) == ["alert"] and NOTED in second.passed)
            first.wake()
            eventually(lambda: SENT in first.passed and "not the leader" in first.said)
            unsafe.set_safe(True)
            eventually(lambda: second.passed.count(NOTED) == 2)
            assert reported(unsafe.engine) == ["alert", "normal"], f"{first.said}\n{second.said}"
