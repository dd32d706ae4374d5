"""The events of a migration are found by its correlation id or its VM, even if the search finds nothing."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.events import (
    EngineEvent,
    find_migration_events,
    find_refusals,
    find_start_events,
    read_events,
)
from tests.placement.engine_server import EngineServer, answering


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


BY_ID = "/events?max=1000&search=correlation_id%3Done"


@pytest.mark.parametrize(("understood", "requests"), [(True, [BY_ID]), (False, [BY_ID, "/events?max=1000"])])
def test_events_of_a_correlation_id_come_oldest_first(understood: bool, requests: list[str]) -> None:
    with reporting(*EVENTS, understood=understood) as (server, connection):
        assert [event.id for event in find_migration_events(connection, correlation_id="one")] == [5, 9]
        assert server.requests == requests


def test_events_of_a_vm_are_found_and_without_either_there_is_nothing_to_search_for() -> None:
    with reporting(*EVENTS) as (_, connection):
        assert [event.id for event in find_migration_events(connection, vm_id="w")] == [7]
        assert find_migration_events(connection, vm_id="w", correlation_id="one") == ()
        with pytest.raises(ValueError, match="must be given"):
            find_migration_events(connection)


def test_every_field_is_read_of_events_that_are_not_known() -> None:
    with reporting(*EVENTS) as (_, connection):
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
        assert [event.id for event in find_start_events(connection)] == [7, 9]


@pytest.mark.parametrize("understood", [True, False])
def test_refusals_that_are_more_than_are_read_are_known_since_the_oldest(understood: bool) -> None:
    refused = [event(number, 54, "one", "v") for number in range(3000, 2000, -1)]
    with reporting(*refused, understood=understood) as (_, connection):
        cut = find_refusals(connection)
    assert (len(cut.events), cut.since) == (1000, cut.events[0].time)
    with reporting(*refused[:-1], understood=understood) as (_, connection):
        whole = find_refusals(connection)
    assert (len(whole.events), whole.since) == (999, None)
