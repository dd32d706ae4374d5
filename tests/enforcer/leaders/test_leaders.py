"""The leader is stopped, or PostgreSQL is, and another takes over: one migration, with its whole record.

What is stopped is a real process, on the store that it shares with the other one, and the migrations are
counted by the simulated engine.
"""

import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import ovirtsdk4
import pytest
from ovirtsdk4 import types

from ovirt_placement.store.enforcer.history import HistoryStore
from ovirt_placement.store.enforcer.intents import IntentState, Store
from ovirt_placement.store.enforcer.leader import LeaseStore
from ovirt_placement.store.keys import KeyStore
from tests.configuration import PASSWORD, write_configuration
from tests.enforcer.actions.bench import STATE
from tests.enforcer.launching import At, EnforcerProcess, simulator
from tests.examples import some
from tests.placement.databases import postgresql
from tests.placement.postgres_server import PostgresServer, own_folder, running, url_of
from tests.proxy.running import eventually

pytestmark = pytest.mark.system


SETTINGS = """\
[enforcer]
mode = "enforce"
strategy = "greedy"
interval_seconds = 0.2
poll_seconds = 1.0
settle_seconds = 0.2
cooldown_seconds = 0.2
lease_seconds = 1.0
"""
HOLDS = "every rule is satisfied"
LEADS, WATCHES, OVER = "the leader from now on", "not the leader", "no longer the leader"
#: The engine would not begin a migration, such as one of a VM that is on its target already.
_REFUSED = 65
#: This many parts are tested side by side.
PARTS = 4


def events_of(api: str) -> list[types.Event]:
    """The engine's events, the oldest first."""
    with ovirtsdk4.Connection(api, "admin@internal", PASSWORD) as connection:
        found = connection.system_service().events_service().list()
    return sorted(found, key=lambda event: int(event.id))


def migrations_of(api: str) -> list[types.Event]:
    """The events of migrations that began and ended."""
    return [event for event in events_of(api) if event.code in (62, 63, 64, 65, 120)]


class Point(NamedTuple):
    """The n-th passing of a point of this name."""

    where: str
    occurrence: int

    @property
    def within_a_transaction(self) -> bool:
        """Whether a write has begun that is not committed yet."""
        kind = self.where.split()[1]
        return self.where == "before commit" or kind in {"INSERT", "UPDATE", "DELETE"}


NOWHERE = Point("", 0)
#: The decisive ones: just before the request, though the lease was checked, and just after it.
DECISIVE = (
    Point("after INSERT INTO intents", 1),
    Point("before POST /vms/a/migrate", 1),
    Point("after POST /vms/a/migrate", 1),
)


class World:
    """A simulated engine with a violated pair, a store, and enforcers."""

    def __init__(self, folder: Path, api: str, store_url: str) -> None:
        self._folder = folder
        self._api = api
        self.store_url = store_url
        self._configuration = write_configuration(folder, self._api, store_url=store_url, more=SETTINGS)
        made = Store(store_url, engine="default", patience_seconds=30)
        made.open_intents()  # it makes the tables
        made.close()

    def enforcer(self, name: str, stop: Point = NOWHERE) -> EnforcerProcess:
        """One to be entered, which is killed at the end."""
        at = At(*stop, signal.SIGSTOP, loop=True)
        return EnforcerProcess(self._folder, name, self._configuration, at)

    def migrations(self) -> list[tuple[int, str]]:
        """What the engine's events say of migrations that began and ended, with the correlation id."""
        return [(event.code, event.correlation_id) for event in migrations_of(self._api)]

    @contextmanager
    def parts(self) -> Iterator[Any]:
        """Those of the store: intents, history, keys and leases."""
        with ExitStack() as stack:
            parts = (
                part(self.store_url, engine="default", patience_seconds=30)
                for part in (Store, HistoryStore, KeyStore, LeaseStore)
            )
            yield [stack.enter_context(closing(part)) for part in parts]

    def settled(self) -> bool:
        """Whether the end of every migration is known, and what it has brought."""
        with self.parts() as (store, history, *_):
            done = any(one.state is IntentState.DONE for one in store.history(within_seconds=600))
            return done and not store.open_intents() and not history.ended_steps()

    def leader(self) -> str | None:
        """Who holds a lease that has not expired."""
        with self.parts() as (*_, leases):
            lease = leases.read()
            return None if lease is None or lease.left_seconds <= 0 else lease.owner

    def judge(self, reported: str) -> None:
        """One migration took place, the store has its record, and so have plan and keeper."""
        found = [(code, mine) for code, mine in self.migrations() if code != _REFUSED]
        assert [code for code, _ in found] == [62, 63], f"{found}\n{reported}"
        mine = found[0][1]
        assert found[1][1] == mine
        with self.parts() as (store, history, keys, _):
            every = store.history(within_seconds=600)
            (done,) = (intent for intent in every if intent.state is IntentState.DONE)
            migrated = (done.vm, done.source, done.target, done.correlation_id)
            assert migrated == ("a", "h1", "h2", mine), reported
            for other in every:
                assert other.id == done.id or other.cause is not None, f"{other}\n{reported}"
            plan = next(plan for plan in history.plans_named(done.plan or "none"))
            outcome = next(one.outcome for one in plan.migrations if one.correlation_id == mine)
            assert outcome is not None, reported
            assert outcome.gain == 1, reported
            assert set(keys.runs()) == {"a", "b"}, reported


@contextmanager
def world(folder: Path, store_url: str) -> Iterator[World]:
    with simulator(folder / "engine", STATE) as api:
        yield World(folder, api, store_url)


@contextmanager
def store_of(database: str, folder: Path) -> Iterator[str]:
    if database == "sqlite":
        yield f"sqlite:///{folder}/store.db"
    else:
        with postgresql() as url:
            yield url


def stop_and_wake(world: World, point: Point) -> str:
    """Stop the first enforcer at a point until another has done its work, or has to wait."""
    with world.enforcer("first", point) as first:
        eventually(lambda: first.stopped or HOLDS in first.said)
        if not first.stopped:
            return "it did not come there"
        passed = len(first.passed)
        with world.enforcer("second") as second:
            if point.within_a_transaction and "sqlite" in world.store_url:
                # Nobody else can write, not even take the lease.
                eventually(lambda: WATCHES in second.said or "cannot be looked at" in second.said)
                eventually(lambda: world.leader() is None)
            else:
                eventually(lambda: HOLDS in second.said and world.settled())
            first.wake()
            eventually(lambda: len(first.passed) > passed or OVER in first.said)
            eventually(lambda: OVER in first.said or WATCHES in first.said or LEADS not in second.said)
            eventually(lambda: HOLDS in first.said + second.said and world.settled())
            story = f"{point} {first.passed[passed - 1]}\n{first.said}\n---\n{second.said}"
            second.end()
        first.end()
    world.judge(story)
    return story


@pytest.mark.timing
@pytest.mark.parametrize("point", DECISIVE, ids=lambda point: point.where)
def test_a_leader_that_is_stopped_around_its_request_makes_no_second_migration(
    point: Point, tmp_path: Path
) -> None:
    with store_of("sqlite", tmp_path) as store_url, world(tmp_path / "world", store_url) as made:
        story = stop_and_wake(made, point)
        assert "it did not come there" not in story


def moments(passed: list[str]) -> list[Point]:
    """The points between which something happens outside of the process, once it leads.

    That is: after each effect, and before a request that changes something, since what it rests on was
    checked after the effect before it.
    """
    seen = Counter[str]()
    found = []
    for where in passed:
        seen[where] += 1
        if where.startswith(("after", "before POST")):
            found.append(Point(where, seen[where]))
    return found[found.index(Point("after INSERT INTO leases", 1)) :]


@pytest.mark.timing
@pytest.mark.nightly  # each point takes a minute or more
@pytest.mark.parametrize(
    ("database", "part"),
    # The points are the same: half of them with PostgreSQL.
    [*(("sqlite", part) for part in range(PARTS)), *(("postgresql", part) for part in range(0, PARTS, 2))],
)
def test_a_leader_that_is_stopped_anywhere_makes_no_second_migration(
    database: str, part: int, tmp_path: Path
) -> None:
    with (
        store_of(database, tmp_path) as store_url,
        world(tmp_path / "undisturbed", store_url) as undisturbed,
        undisturbed.enforcer("first") as alone,
    ):
        eventually(lambda: HOLDS in alone.said and undisturbed.settled())
        points = moments(alone.passed)
        alone.end()
        undisturbed.judge(alone.said)
    for number, point in enumerate(some(points[part::PARTS])):
        folder = tmp_path / str(number)
        folder.mkdir()
        with store_of(database, folder) as store_url, world(folder / "world", store_url) as disturbed:
            stop_and_wake(disturbed, point)


@pytest.mark.timing
@pytest.mark.parametrize("ending", ["SIGTERM", "SIGKILL"])
def test_the_other_takes_over_when_the_leader_ends(ending: str, tmp_path: Path) -> None:
    with (
        store_of("sqlite", tmp_path) as store_url,
        world(tmp_path / "world", store_url) as made,
        made.enforcer("first") as first,
    ):
        eventually(lambda: LEADS in first.said)
        with made.enforcer("second") as second:
            eventually(lambda: WATCHES in second.said)
            if ending == "SIGTERM":
                leader = made.leader()
                first.end()
                assert leader is not None
                assert made.leader() != leader, "the lease was not given back"
            else:
                first.kill()
            eventually(lambda: LEADS in second.said and HOLDS in second.said and made.settled())
            second.end()
            made.judge(second.said)


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
