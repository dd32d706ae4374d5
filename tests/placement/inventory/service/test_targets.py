"""Where migrations go is read from the text of events, and forgotten when they end."""

from __future__ import annotations

import pytest

from ovirt_placement.engine.events import EngineEvent
from ovirt_placement.inventory.service.events import MigrationTargets, destination
from tests import builders as build
from tests.placement.inventory.events import event

ODD = "(VM: v, Source: a, Destination: b, Destination: c, User: u)"
HOSTS = {"h1": "id1", "h2": "id2", "h3": "id3"}


def started(number: int, target: str = "h2", code: int = 62) -> EngineEvent:
    text = f"Migration started (VM: v, Source: h1, Destination: {target}, User: admin). "
    return event(number, code, vm="v", description=text)


def reported(*events: EngineEvent, now: float = 0.0) -> MigrationTargets:
    targets = MigrationTargets()
    for one in events:
        targets.report(one, "v", HOSTS, now)
    return targets


@pytest.mark.parametrize(
    ("text", "hosts", "found"),
    [
        ("Migration started (VM: v, Source: h1, Destination: h2, User: admin@internal). ", HOSTS, "id2"),
        ("Migration initiated by system (VM: v, Source: h1, Destination: h3, Reason: load).", HOSTS, "id3"),
        ("Migration started (VM: v, Source: h1, Destination: <UNKNOWN>, User: a).", HOSTS, None),
        ("Migration started (VM: w, Source: h1, Destination: h2, User: a).", HOSTS, None),
        ("Migration started (VM: v, Source: gone, Destination: h2, User: a).", HOSTS, None),
        ("Migration failed (VM: v, Source: h1).", HOSTS, None),
        ("", HOSTS, None),
        # A name that is the beginning of another.
        ("(VM: v, Source: h, Destination: h-2, User: a)", {"h": "a", "h-2": "b"}, "b"),
        # Names with the text's own words in them.
        (ODD, {"a": "1", "b, Destination: c": "2"}, "2"),
        (ODD, {"a, Destination: b": "1", "c": "2"}, "2"),
        # Two readings that mean different hosts: unknown.
        (ODD, {"a": "1", "a, Destination: b": "2", "b, Destination: c": "3", "c": "4"}, None),
        ("(VM: v, Source: a, Destination: b, User: c, User: )", {"a": "", "b": "1", "b, User: c": "2"}, None),
    ],
)  # fmt: skip
def test_a_target_is_found_only_where_the_text_can_mean_but_one(
    text: str, hosts: dict[str, str], found: str | None
) -> None:
    assert destination(text, "v", hosts) == found


def test_a_vm_may_be_named_like_the_text() -> None:
    odd = "x, Source: h1, Destination: h3, User: y"
    text = f"Migration started (VM: {odd}, Source: h1, Destination: h2, User: a). "
    assert destination(text, odd, HOSTS) == "id2"


@pytest.mark.parametrize("code", [62, 67])
def test_the_start_is_reported_and_each_end_takes_it_back(code: int) -> None:
    if code == 67:
        text = "Migration initiated by system (VM: v, Source: h1, Destination: h2, Reason: r)."
        start = event(5, 67, vm="v", description=text)
    else:
        start = started(5)
    assert reported(start).target_host("v") == "id2"
    for end in (63, 64, 65, 120, 128, 140, 161, 1111):
        assert reported(start, event(6, end, vm="v")).target_host("v") is None


def test_events_may_come_in_any_order() -> None:
    assert reported(event(6, 63, vm="v"), started(5)).target_host("v") is None
    assert reported(started(8, "h3"), event(6, 63, vm="v"), started(5)).target_host("v") == "id3"


def test_a_vm_that_has_not_begun_yet_keeps_its_target_for_a_while() -> None:
    before = build.vm("v", "id1")
    targets = reported(started(5), now=10.0)
    targets.read(before, 11.0)  # the engine logs before it saves
    assert targets.target_host("v") == "id2"
    targets.read(before, 15.1)
    assert targets.target_host("v") is None


def test_a_vm_that_was_migrating_and_is_up_has_no_target() -> None:
    targets = reported(started(5), now=10.0)
    targets.read(build.vm("v", "id1", status="migrating"), 10.5)
    assert targets.target_host("v") == "id2"
    targets.read(build.vm("v", "id1"), 11.0)
    assert targets.target_host("v") is None


def test_a_vm_that_is_there_already_has_no_target() -> None:
    targets = reported(started(5), now=10.0)
    targets.read(build.vm("v", "id2"), 10.5)
    assert targets.target_host("v") is None


def test_the_end_is_remembered_for_a_late_start_and_then_forgotten() -> None:
    targets = reported(event(6, 63, vm="v"), now=10.0)
    targets.read(build.vm("v", "id2"), 20.0)
    targets.report(started(5), "v", HOSTS, 20.0)
    assert targets.target_host("v") is None
    targets.read(build.vm("v", "id2"), 71.0)
    targets.report(started(5), "v", HOSTS, 71.0)  # as if it were new: nothing is known any more
    assert targets.target_host("v") == "id2"
