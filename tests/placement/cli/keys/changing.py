"""A small state to set keys in, and what there is to see after a change of them."""

from __future__ import annotations

from typing import Any

from tests.builders import cluster, host, snapshot, vm
from tests.placement.cli.live_engine import LiveEngine

TEMPLATE = "12345678-0000-4000-8000-000000000001"
STATE = snapshot(
    cluster("c1", name="blue"),
    cluster("c2", name="red"),
    host("h1", name="north", cluster="c1"),
    host("h2", name="south", cluster="c1"),
    host("h3", name="east", cluster="c2"),
    vm("v1", name="web", cluster="c1"),
    vm("v2", "h1", name="cache", cluster="c1"),
)


def listed(live: LiveEngine) -> list[tuple[Any, ...]]:
    """What is set: on what, whose, its name, value, weight and sticky flag."""
    fields = ("place", "class", "name", "value", "weight", "sticky")
    return [tuple(key[field] for field in fields) for key in live.data(0, "keys", "list")["keys"]]


def refused(live: LiveEngine, *arguments: str) -> str:
    """What is said of a change that must not be made."""
    before = listed(live)
    _, err = live.run(2, "keys", *arguments)
    assert err.count("\n") == 1
    assert listed(live) == before
    return err.removeprefix("ovirt-placement: ").strip()
