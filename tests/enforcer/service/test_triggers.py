"""What can violate or repair a rule wakes the clusters that it concerns, and nothing else does."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from ovirt_enforcer.service import triggers
from ovirt_placement.engine.reading.events import EngineEvent
from ovirt_placement.model import Snapshot
from tests.builders import APART, cluster, group, host, snapshot, vm

STATE = snapshot(
    cluster("one"),
    cluster("two"),
    host("h1", cluster="one"),
    host("h2", cluster="two"),
    vm("a", "h1", cluster="one"),
    vm("b", "h2", cluster="two"),
)


def event(code: int, **fields: Any) -> EngineEvent:
    facts: dict[str, Any] = {"correlation_id": None, "vm": None, "host": None, "cluster": None}
    return EngineEvent(id=1, code=code, severity="normal", time=0.0, description="", **{**facts, **fields})


@pytest.mark.parametrize(
    ("reported", "expected"),
    [
        (event(10350, cluster="one"), {"one"}),
        (event(10352, cluster="two"), {"two"}),
        (event(10382), {"one", "two"}),
        (event(9912), {"one", "two"}),
        (event(811, cluster="one"), {"one"}),
        (event(12, host="h2"), {"two"}),
        (event(61, vm="a"), {"one"}),
        (event(63, vm="b", correlation_id="theirs"), {"two"}),
        (event(63, vm="b", correlation_id="ours"), set()),
        (event(9802, cluster="one"), set()),
        (event(30), set()),
    ],
    ids=lambda value: str(value.code) if isinstance(value, EngineEvent) else "",
)
def test_events(reported: EngineEvent, expected: set[str]) -> None:
    assert triggers.reported([reported], STATE, {"ours"}) == expected


def with_vm(**fields: Any) -> Snapshot:
    return replace(STATE, vms=(replace(STATE.vms[0], **fields), STATE.vms[1]))


def with_host(**fields: Any) -> Snapshot:
    return replace(STATE, hosts=(replace(STATE.hosts[0], **fields), STATE.hosts[1]))


@pytest.mark.parametrize(
    "after",
    [
        replace(STATE, affinity_groups=(group("g", APART, "a b", cluster="one"),)),
        with_vm(host=None, status="down"),
        with_vm(memory_mb=4096),
        with_vm(host="h2"),
        with_host(status="maintenance"),
        replace(STATE, clusters=(cluster("one", upgrade_mode=True), cluster("two"))),
    ],
    ids=["a group", "a stop", "a size", "a migration", "a host", "the cluster"],
)
def test_snapshots_that_differ_in_what_counts(after: Snapshot) -> None:
    assert triggers.changed(STATE, after, ()) == {"one"}


@pytest.mark.parametrize(
    "after",
    [
        STATE,
        with_vm(usage_cpu_percent=99.0),
        with_vm(status="migrating"),
        with_host(free_mb=1, cpu_percent=99.0),
    ],
    ids=["nothing", "a busy VM", "a migration under way", "a busy host"],
)
def test_snapshots_that_differ_in_nothing_that_counts(after: Snapshot) -> None:
    assert triggers.changed(STATE, after, ()) == set()


def test_where_our_own_vms_are_is_no_news() -> None:
    assert triggers.changed(STATE, with_vm(host="h2"), {"a"}) == set()
