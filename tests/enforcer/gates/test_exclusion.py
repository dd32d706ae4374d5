"""What was opted out is left alone: VMs, hosts in both directions and groups, by name, id or tag."""

from __future__ import annotations

from typing import Any

import pytest

from ovirt_enforcer.settings import EnforcerSettings, Mode
from tests.builders import APART, Part, group, host, snapshot, vm

from .judging import admitted, closed, gates, plan, step

TAG = "ovirt-enforcer-exclude"
NAMED: tuple[Part, ...] = (
    host("h1", name="one"),
    host("h2", name="two"),
    vm("a", "h1", name="alpha"),
    vm("b", "h1"),
    group("g", APART, "a b", name="pair"),
)


def excluding(**lists: Any) -> EnforcerSettings:
    return EnforcerSettings(mode=Mode.ENFORCE, **lists)


@pytest.mark.parametrize(
    ("lists", "reason"),
    [
        ({"exclude_vms": ("alpha",)}, "alpha is among exclude_vms"),
        ({"exclude_vms": ("a",)}, "alpha is among exclude_vms"),
        ({"exclude_hosts": ("one",)}, "host one is among exclude_hosts"),
        ({"exclude_hosts": ("h2",)}, "host two is among exclude_hosts"),
        ({"exclude_groups": ("pair",)}, "affinity group pair is among exclude_groups"),
        ({"exclude_groups": ("g",)}, "affinity group pair is among exclude_groups"),
    ],
)
def test_a_list_opts_out_by_name_and_by_id(lists: dict[str, tuple[str, ...]], reason: str) -> None:
    assert closed(gates(excluding(**lists)), *NAMED) == ("exclusion", reason)


def test_a_tag_opts_out() -> None:
    alone, tagged = f"alpha bears the tag {TAG}", f"host two bears the tag {TAG}"
    assert closed(gates(tagged=frozenset("a")), *NAMED) == ("exclusion", alone)
    on_vm = (*NAMED[:2], vm("a", "h1", name="alpha", tags=(TAG,)), *NAMED[3:])
    assert closed(gates(), *on_vm) == ("exclusion", alone)
    on_host = (NAMED[0], host("h2", name="two", tags=("other", TAG)), *NAMED[2:])
    assert closed(gates(), *on_host) == ("exclusion", tagged)
    assert admitted(gates(excluding(exclude_tag="other-tag")), *on_vm)
    assert admitted(gates(excluding(exclude_tag="")), *on_vm)


def test_the_planner_knows_of_vms_hosts_and_groups() -> None:
    state = snapshot(*NAMED)
    of_host = {"a": "host one is among exclude_hosts", "b": "host one is among exclude_hosts"}
    asked = gates(excluding(exclude_hosts=("one",)))
    assert asked.frozen(state) == of_host
    assert asked.frozen_hosts(state) == {"h1": "host one is among exclude_hosts"}
    asked = gates(excluding(exclude_groups=("pair",), exclude_vms=("b",)))
    assert asked.frozen(state) == {"b": "b is among exclude_vms"}
    assert asked.held_groups(state) == {"g": "affinity group pair is among exclude_groups"}
    assert asked.frozen_hosts(state) == {}


def test_a_vm_of_an_excluded_group_may_be_moved_for_another() -> None:
    settings = excluding(exclude_groups=("pair",))
    assert admitted(gates(settings), *NAMED, of=step(groups="k"))
    assert admitted(gates(settings), *NAMED, of=step(groups="", repairs=()))


def test_nothing_makes_room_for_an_excluded_group() -> None:
    room, repairs = step("b", groups=""), step("a", after=(0,))
    asked = gates(excluding(exclude_groups=("pair",)))
    assert closed(asked, *NAMED, of=room, within=plan(room, repairs))[0] == "exclusion"
