"""`groups list` shows how groups stand: whether they are violated, and where their members run."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders import (
    APART,
    DISABLED,
    SOFT_APART,
    SOFT_TOGETHER,
    TOGETHER,
    group,
    host,
    label,
    snapshot,
    vm,
)
from tests.placement.cli.documents import parsed
from tests.placement.cli.live_engine import Starting
from tests.placement.cli.state_asking import StateAsking

STATE = snapshot(
    host("h1", name="north"),
    host("h2", name="south"),
    vm("v1", "h1", name="web"),
    vm("v2", "h1", name="cache"),
    vm("v3", "h2", name="db"),
    vm("v4", name="idle"),
    label("l1", "v3"),
    group("g1", SOFT_TOGETHER, "v1 v2 v4", name="kept"),
    group("g2", SOFT_TOGETHER, "v1", name="split", vm_labels=("l1",)),
    group("g3", APART, "v1 v2 v3", name="crowded", hosts_rule=SOFT_APART, hosts="h2"),
    group("g4", DISABLED, "v1 v3", name="asks-nothing"),
    group("g5", TOGETHER, "v1 v4", name="left"),
    group("g6", TOGETHER, "v3 v4", name="right"),
)


@pytest.fixture
def listed(asking: StateAsking) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = parsed(asking.text(0, "groups list --json", STATE))["groups"]
    return found


def test_which_groups_are_violated(listed: list[dict[str, Any]]) -> None:
    assert {each["name"]: each["violated"] for each in listed} == {
        "kept": False,
        "split": True,
        "crowded": True,
        "asks-nothing": False,
        "left": True,
        "right": True,
    }


def test_what_of_them_is_violated_and_who_stands_wrong(listed: list[dict[str, Any]]) -> None:
    (crowded,) = (each for each in listed if each["name"] == "crowded")
    assert [(rule["asks"], rule["hard"], names(rule["offenders"])) for rule in crowded["violated_rules"]] == [
        ("apart", True, ["web", "cache"]),
        ("off its hosts", False, ["db"]),
    ]


def test_a_chain_that_is_violated_only_as_a_whole_says_with_whom(listed: list[dict[str, Any]]) -> None:
    """Hard groups that a VM ties, though it is down."""
    (left,) = (each for each in listed if each["name"] == "left")
    assert [names(rule["only_with"]) for rule in left["violated_rules"]] == [["right"]]


def test_members_that_run_with_their_hosts(listed: list[dict[str, Any]]) -> None:
    (split,) = (each for each in listed if each["name"] == "split")
    assert [(one["vm"]["name"], one["host"]["name"]) for one in split["running"]] == [
        ("web", "north"),
        ("db", "south"),
    ]


def test_it_is_what_the_engine_calls_violated_but_for_chains(serving: Starting) -> None:
    """Its `violated` is computed without our rules."""
    with serving(STATE) as live:
        service = live.engine.queries.state.groups_of("cluster1")
        engines = {each.name: live.engine.queries.is_broken(each) for each in service}
        ours = {each["name"]: each["violated"] for each in live.data(0, "groups", "list")["groups"]}
    assert ours == {**engines, "left": True, "right": True}
    assert not engines["left"]


def names(found: list[dict[str, str]]) -> list[str]:
    return [each["name"] for each in found]
