"""Each answer of the engine to a migration becomes its type; a watch ends where the VM does."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ovirt_placement.engine import actions
from ovirt_placement.engine.actions import Progress, VmState
from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.connection.failures import EngineAway
from ovirt_placement.engine.events import (
    DONE,
    REFUSED,
    START_FAILED,
    STARTED,
    VM_STARTED,
    EngineEvent,
    find_kinds,
    find_migration_events,
    read_events,
)
from ovirt_placement.engine.topology import read_snapshot
from ovirt_service.errors import UserError
from ovirt_simulator.core.engine import Engine
from tests import builders
from tests.placement.engine.simulated import simulated
from tests.placement.engine_server import API, Answer, EngineServer, answering, connected
from tests.placement.sockets import refusing_port, silent_port


def refused(detail: str) -> bytes:
    fault = f"<fault><detail>{detail}</detail><reason>Operation Failed</reason></fault>"
    return f"<action>{fault}<status>failed</status></action>".encode()


def engine_that_answers(status: int, body: bytes, missing: str = "") -> Answer:
    """Answer a migration so; everything else is there, but for one path."""

    def answer(path: str) -> tuple[int, bytes]:
        if path.partition("?")[0].endswith("/migrate"):
            return status, body
        return (404, b"") if path == missing else (200, b"<thing/>")

    return answer


FILTERED = (
    "[Cannot migrate VM. There is no host that satisfies current scheduling constraints. See below for"
    " details:, The host h2 did not satisfy internal filter VmAffinityGroups because it matched negative"
    " affinity rules g1.]"
)


_CANNOT = "Cannot migrate VM."
_NO_HOSTS = "There are no hosts to use"


@pytest.mark.parametrize(
    ("status", "detail", "missing", "of_all", "says"),
    [
        (400, "[]", "", False, "an external filter of the scheduling policy refused the host"),
        (409, f"[{_CANNOT} VM v is being migrated.]", "", True, f"{_CANNOT} VM v is being"),
        (409, FILTERED, "", True, "details:; The host h2 did not satisfy internal filter"),
        (400, f"[{_NO_HOSTS}. Check that the cluster contains at least one.]", "", False, _NO_HOSTS),
        (200, f"[{_CANNOT}]", "", False, "Cannot migrate VM"),
        (400, f"[{_CANNOT} VM is not found.]", "/vms/v", False, "the engine has no VM v"),
        (400, f"[{_CANNOT} Invalid Host Id.]", "/hosts/h", False, "the engine has no host h"),
        (403, "[User is not authorized to perform this action.]", "", True, "User is not authorized"),
    ],
)
def test_a_rejection_has_the_engines_sentences_and_is_of_a_target_or_of_all(
    status: int, detail: str, missing: str, of_all: bool, says: str
) -> None:
    with (
        answering(engine_that_answers(status, refused(detail), missing)) as (_, engine),
        pytest.raises(actions.Rejection, match=says) as rejection,
    ):
        actions.migrate(engine, "v", "h", "correlation")
    assert rejection.value.of_all is of_all


def test_an_accepted_migration_carries_its_correlation_id() -> None:
    accepted = b'<action><status>complete</status><vm id="v"/></action>'
    with answering(engine_that_answers(200, accepted)) as (server, engine):
        actions.migrate(engine, "v", "h", "repair-1", closure=True)
    assert server.requests == ["/vms/v/migrate?correlation_id=repair-1"]


@pytest.mark.parametrize("name", ["", "with space", "a" * 37, "ä"])
def test_a_correlation_id_that_the_engine_would_change_is_a_bug_of_ours(name: str) -> None:
    with (
        answering(engine_that_answers(200, b"<action/>")) as (server, engine),
        pytest.raises(ValueError, match="correlation id"),
    ):
        actions.migrate(engine, "v", "h", name)
    assert server.requests == []


def away(engine: EngineConnection) -> bool:
    """Whether an engine that is away may have been asked."""
    with pytest.raises(EngineAway) as found:
        actions.migrate(engine, "v", "h", "correlation")
    return found.value.request_sent


@pytest.mark.system
def test_an_engine_away_says_whether_it_may_have_been_asked() -> None:
    with refusing_port() as port, connected(f"http://127.0.0.1:{port}{API}") as engine:
        assert not away(engine)
    with silent_port() as port, connected(f"http://127.0.0.1:{port}{API}", timeout_seconds=1) as engine:
        assert away(engine)


def test_an_answer_of_the_web_server_alone_leaves_the_outcome_open() -> None:
    with answering(engine_that_answers(503, b"<html>busy</html>")) as (_, engine):
        assert away(engine)


@pytest.mark.parametrize(
    ("body", "state"),
    [
        (b'<vm id="v"><status>up</status><host id="h"/></vm>', VmState("up", "h")),
        (b'<vm id="v"><status>down</status></vm>', VmState("down", None)),
        (b'<vm id="v"/>', VmState("unassigned", None)),
    ],
)
def test_a_vm_is_read_where_it_is(body: bytes, state: VmState) -> None:
    with answering(lambda path: (200, body)) as (_, engine):
        assert actions.read_vm(engine, "v") == state


@pytest.mark.parametrize(
    "page", [(404, b"<html>Not Found</html>"), (200, b"<html/>"), (200, b"<vms/>"), (404, b"")]
)
def test_what_is_no_answer_about_a_vm_says_not_that_it_is_gone(page: tuple[int, bytes]) -> None:
    with answering(lambda path: page) as (_, engine), pytest.raises(UserError):
        actions.read_vm(engine, "v")


ON_SOURCE, MIGRATING, HANDED_OVER = VmState("up", "a"), VmState("migrating", "a"), VmState("migrating", "b")


@pytest.mark.parametrize(
    ("looks", "progress"),
    [
        ([MIGRATING, HANDED_OVER, VmState("up", "b")], Progress.ARRIVED),
        ([VmState("up", "b")], Progress.ARRIVED),
        ([MIGRATING, ON_SOURCE], Progress.RETURNED),
        ([ON_SOURCE, MIGRATING, HANDED_OVER], Progress.UNDER_WAY),
        ([ON_SOURCE, ON_SOURCE, ON_SOURCE], Progress.UNDER_WAY),
        ([MIGRATING, VmState("up", "c")], Progress.ELSEWHERE),
        ([MIGRATING, VmState("down", None)], Progress.STOPPED),
        ([MIGRATING, None], Progress.GONE),
    ],
)
def test_a_watch_ends_where_the_vm_does(looks: list[VmState | None], progress: Progress) -> None:
    watch = actions.Watch("a", "b", accepted_at=100.0)
    for second, look in enumerate(looks):
        assert not watch.ended
        watch = watch.step(look, 100.0 + second)
    assert watch.progress is progress
    assert watch.ended is (progress is not Progress.UNDER_WAY)


def test_a_migration_that_never_showed_is_over_after_a_while() -> None:
    watch = actions.Watch("a", "b", accepted_at=100.0)
    assert watch.step(ON_SOURCE, 104.9).progress is Progress.UNDER_WAY
    assert watch.step(ON_SOURCE, 105.0).progress is Progress.RETURNED


STATES = st.builds(VmState, st.sampled_from(["up", "migrating", "down"]), st.sampled_from("abc"))


@given(st.lists(st.tuples(st.floats(0, 10), st.none() | STATES)))
def test_a_migrating_vm_never_ends_a_watch(looks: list[tuple[float, VmState | None]]) -> None:
    watch = actions.Watch("a", "b", accepted_at=0.0)
    for now, look in looks:
        watch = watch.step(look, now)
        assert not (look is not None and look.status == "migrating" and watch.ended)
        if watch.ended:
            return


@pytest.fixture
def pair() -> Iterator[tuple[Engine, EngineConnection]]:
    """Two hosts, and a VM on the first."""
    state = builders.snapshot(builders.host("h1"), builders.host("h2"), builders.vm("v", "h1"))
    with simulated(state) as (engine, _, connection):
        yield engine, connection


def followed(engine: Engine, connection: EngineConnection) -> list[Progress]:
    """Watch the migration from `h1` to `h2`, second by simulated second, until it ends."""
    watch = actions.Watch("h1", "h2", accepted_at=0.0)
    seen = []
    for second in range(1, 600):
        engine.advance(1.0)
        watch = watch.step(actions.read_vm(connection, "v"), float(second))
        seen.append(watch.progress)
        if watch.ended:
            return seen
    raise AssertionError("the migration never ended")


def test_a_migration_is_accepted_once_watched_to_its_end_and_found_again(
    pair: tuple[Engine, EngineConnection],
) -> None:
    engine, connection = pair
    actions.migrate(connection, "v", "h2", "repair-1")
    with pytest.raises(actions.Rejection, match="migrat"):
        actions.migrate(connection, "v", "h2", "repair-2")
    progress = followed(engine, connection)
    assert (progress[0], progress[-1]) == (Progress.UNDER_WAY, Progress.ARRIVED)
    events = find_migration_events(connection, "v", "repair-1")
    assert [event.code in STARTED for event in events] == [True, False]
    assert events[-1].code in DONE
    assert {event.vm for event in events} == {"v"}
    assert find_migration_events(connection, "v", "repair-2") == ()
    assert read_snapshot(connection).vms[0].host == "h2"


@pytest.mark.parametrize(
    ("vm", "host", "says"),
    [("v", "h1", _NO_HOSTS), ("v", "h9", "the engine has no host h9"), ("w", "h2", "the engine has no VM w")],
)
def test_what_cannot_be_is_refused(
    pair: tuple[Engine, EngineConnection], vm: str, host: str, says: str
) -> None:
    with pytest.raises(actions.Rejection, match=says):
        actions.migrate(pair[1], vm, host, "repair-1")


# The events of a migration are found by its correlation id or its VM, even if the search finds nothing.
def event(number: int, code: int, correlation_id: str, vm: str) -> str:
    return f"""<event id="{number}"><code>{code}</code><severity>normal</severity>
      <time>2026-01-02T03:04:05.250Z</time><description>Migration</description>
      <correlation_id>{correlation_id}</correlation_id>
      <vm id="{vm}"><name>n</name></vm><host id="h"/><cluster id="c"/></event>"""


EVENTS = [
    event(9, 63, "one", "v"),
    event(8, 13, "one", "v"),
    event(7, 62, "two", "w"),
    event(5, 62, "one", "v"),
]


@contextmanager
def reporting(
    *events: str, understood: bool = True, search: str = "search="
) -> Iterator[tuple[EngineServer, EngineConnection]]:
    """An engine with these events; a search that it does not understand finds nothing."""

    def answer(path: str) -> tuple[int, bytes]:
        assert search in path or "search" not in path
        silent = "search" in path and not understood
        return 200, f"<events>{'' if silent else ''.join(events)}</events>".encode()

    with answering(answer) as (server, connection):
        yield server, connection


BY_ID = "/events?max=1000&search=correlation_id%3Done+and+_event_vm_id%3Dv"


@pytest.mark.parametrize(("understood", "requests"), [(True, [BY_ID]), (False, [BY_ID, "/events?max=1000"])])
def test_events_of_a_correlation_id_come_oldest_first(understood: bool, requests: list[str]) -> None:
    with reporting(*EVENTS, understood=understood) as (server, connection):
        assert [event.id for event in find_migration_events(connection, "v", "one")] == [5, 9]
        assert server.requests == requests


def test_events_of_a_vm_are_found_and_every_field_of_those_that_are_not_known() -> None:
    with reporting(*EVENTS) as (_, connection):
        assert [event.id for event in find_migration_events(connection, "w")] == [7]
        assert find_migration_events(connection, "w", "one") == ()
        events = read_events(connection, at_most=10, but={7, 1})
    assert [event.id for event in events] == [5, 8, 9]
    assert events[-1] == EngineEvent(
        id=9, code=63, severity="normal", time=1767323045.25, description="Migration",
        correlation_id="one", vm="v", host="h", cluster="c",
    )  # fmt: skip


@pytest.mark.parametrize("understood", [True, False])
def test_events_of_starts_come_oldest_first(understood: bool) -> None:
    events = (event(9, 32, "two", "v"), event(8, 62, "two", "v"), event(7, 153, "one", "w"))
    search = "search=type%3D32+or+type%3D152+or+type%3D153+or+type%3D506"
    with reporting(*events, understood=understood, search=search) as (_, connection):
        assert [event.id for event in find_kinds(connection, VM_STARTED).events] == [7, 9]


@pytest.mark.parametrize("understood", [True, False])
def test_refusals_that_are_more_than_are_read_are_known_since_the_oldest(understood: bool) -> None:
    refused = [event(number, 54, "one", "v") for number in range(3000, 2000, -1)]
    for events, known in ((refused, True), (refused[:-1], False)):
        with reporting(*events, understood=understood) as (_, connection):
            found = find_kinds(connection, START_FAILED | REFUSED)
        since = found.events[0].time if known else None
        assert (len(found.events), found.since) == (len(events), since)
