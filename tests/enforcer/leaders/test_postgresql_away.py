"""PostgreSQL stops, hangs, or fails over under two enforcers: one migration, with its whole record."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.enforcer.launching import EnforcerProcess
from tests.enforcer.leaders.test_leaders import HOLDS, LEADS, WATCHES, World, world
from tests.placement.postgres_server import PostgresServer, own_folder, running, url_of
from tests.proxy.running import eventually

pytestmark = pytest.mark.system

#: Longer than a lease and all patience with the store.
AGE = 8.0
NO_LEASE = "the lease cannot be looked at"


class Stage:
    """Two enforcers on one PostgreSQL, with another one at hand."""

    def __init__(self, made: World, server: PostgresServer, standby: PostgresServer | None) -> None:
        self.world = made
        self.server = server
        self.standby = standby
        self.enforcers: list[EnforcerProcess] = []

    def is_missed(self) -> bool:
        return all(NO_LEASE in enforcer.said for enforcer in self.enforcers)


def stop_and_start(stage: Stage) -> None:
    stage.server.stop()
    eventually(stage.is_missed)
    stage.server.start()


def hang(stage: Stage) -> None:
    until = time.monotonic() + AGE
    with stage.server.hanging():
        eventually(lambda: time.monotonic() > until)


def fail_over(stage: Stage) -> None:
    assert stage.standby is not None
    stage.server.stop()
    eventually(stage.is_missed)
    stage.standby.promote()


def fail_over_at_once(stage: Stage) -> None:
    assert stage.standby is not None
    stage.server.stop()
    stage.standby.promote()


def led(stage: Stage) -> bool:
    said = [enforcer.said for enforcer in stage.enforcers]
    return any(LEADS in one for one in said) and any(WATCHES in one for one in said)


def migrating(stage: Stage) -> bool:
    return any(code == 62 for code, _ in stage.world.migrations())


@pytest.fixture
def stage(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Stage]:
    with ExitStack() as stack:
        server, standby = stack.enter_context(running()), None
        if "fail_over" in request.node.name:
            standby = server.standby(stack.enter_context(own_folder()))
            stack.callback(standby.stop)
        url = url_of(server, standby) if standby else server.url
        made = stack.enter_context(world(tmp_path / "world", url))
        stage = Stage(made, server, standby)
        stage.enforcers = [stack.enter_context(made.enforcer(name)) for name in ("first", "second")]
        yield stage


#: One of each kind; the others at night.
FEW = {(migrating, stop_and_start), (migrating, fail_over), (led, hang)}
CASES = [
    pytest.param(when, what, marks=() if (when, what) in FEW else pytest.mark.nightly)
    for when in (led, migrating)
    for what in (stop_and_start, hang, fail_over, fail_over_at_once)
]


@pytest.mark.parametrize(("when", "what"), CASES, ids=lambda given: given.__name__)
def test_it_goes_on_where_it_was(
    stage: Stage, when: Callable[[Stage], bool], what: Callable[[Stage], None]
) -> None:
    eventually(lambda: when(stage))
    what(stage)
    first, second = stage.enforcers
    eventually(lambda: HOLDS in first.said + second.said and stage.world.settled())
    reported = f"{first.said}\n---\n{second.said}"
    for enforcer in stage.enforcers:
        enforcer.end()
    stage.world.judge(reported)
    assert "Traceback" not in reported, reported
