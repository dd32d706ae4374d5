"""The events of a migration are found by its correlation id or its VM, even if the search finds nothing."""

from typing import Any

import pytest

from ovirt_placement.engine.events import (
    EngineEvent,
    LatestEvents,
    find_migration_events,
    find_refusals,
    find_start_events,
    read_events,
)
from tests.placement.engine_server import answering


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


def found(answer_search: bool = True, **wanted: Any) -> tuple[list[int], list[str]]:
    """Return the ids that are found, and the requests that it took."""

    def answer(path: str) -> tuple[int, bytes]:
        events = "" if "search" in path and not answer_search else "".join(EVENTS)
        return 200, f"<events>{events}</events>".encode()

    with answering(answer) as (server, connection):
        events = find_migration_events(connection, **wanted)
        return [event.id for event in events], server.requests


def test_events_of_a_correlation_id_come_oldest_first() -> None:
    assert found(correlation_id="one") == ([5, 9], ["/events?max=1000&search=correlation_id%3Done"])


def test_events_of_a_vm_are_found() -> None:
    assert found(vm_id="w")[0] == [7]
    assert found(vm_id="w", correlation_id="one")[0] == []


def test_a_search_that_the_engine_does_not_understand_reads_as_empty_and_is_not_believed() -> None:
    ids, requests = found(answer_search=False, correlation_id="one")
    assert ids == [5, 9]
    assert requests[1:] == ["/events?max=1000"]


def test_something_must_be_searched_for() -> None:
    with pytest.raises(ValueError, match="must be given"):
        found()


def test_every_field_of_an_event_is_read() -> None:
    with answering(lambda path: (200, f"<events>{EVENTS[0]}</events>".encode())) as (_, connection):
        events = find_migration_events(connection, vm_id="v")
    assert events == (
        EngineEvent(
            id=9,
            code=63,
            severity="normal",
            time=1767323045.25,
            description="Migration",
            correlation_id="one",
            vm="v",
            host="h",
            cluster="c",
        ),
    )


def test_events_that_are_known_are_left_out() -> None:
    content = f"<events>{''.join(EVENTS)}</events>".encode()
    with answering(lambda path: (200, content)) as (_, connection):
        events = read_events(connection, at_most=10, but={9, 7, 1})
    assert [event.id for event in events] == [5, 8]


@pytest.mark.parametrize("understood", [True, False])
def test_events_of_starts_come_oldest_first(understood: bool) -> None:
    events = [event(9, 32, "two", "v"), event(8, 62, "two", "v"), event(7, 153, "one", "w")]

    def answer(path: str) -> tuple[int, bytes]:
        search = "search=type%3D32+or+type%3D152+or+type%3D153+or+type%3D506" in path
        assert search or "search" not in path
        return 200, f"<events>{''.join(events) if understood or not search else ''}</events>".encode()

    with answering(answer) as (_, connection):
        assert [event.id for event in find_start_events(connection)] == [7, 9]


@pytest.mark.parametrize("understood", [True, False])
def test_refusals_that_are_more_than_are_read_are_known_since_the_oldest(understood: bool) -> None:
    refused = [event(number, 54, "one", "v") for number in range(3000, 2000, -1)]

    def found(*events: str) -> LatestEvents:
        def answer(path: str) -> tuple[int, bytes]:
            silent = "search" in path and not understood
            return 200, f"<events>{'' if silent else ''.join(events)}</events>".encode()

        with answering(answer) as (_, connection):
            return find_refusals(connection)

    cut = found(*refused)
    assert (len(cut.events), cut.since) == (1000, cut.events[0].time)
    whole = found(*refused[:-1])
    assert (len(whole.events), whole.since) == (999, None)
