"""A refusal names the groups that clash with the one being added or changed, and others by themselves."""

from __future__ import annotations

import re

from ovirt_placement.model import Snapshot
from ovirt_simulator.core.commands.groups import Members
from tests.builders import APART, SOFT_TOGETHER, TOGETHER, cluster, group, host, snapshot, vm
from tests.placement.cli.live_engine import LiveEngine, Starting

HARD_OFF = ("--hosts-rule", "negative", "--hosts-enforcing")
ALREADY = "the engine saves no group of this cluster as long as others clash: "


def state(*groups: object) -> Snapshot:
    return snapshot(
        cluster("c1", name="blue"),
        host("h1", name="north", cluster="c1"),
        host("h2", name="south", cluster="c1"),
        *(vm(name, cluster="c1") for name in "abcdef"),
        *groups,
    )


def chain(name: str, vms: str) -> object:
    return group(name, SOFT_TOGETHER, vms, cluster="c1")


def sentences(err: str) -> list[tuple[bool, list[str], list[str]]]:
    """Of each clash whether it is there already, the groups and the VMs."""
    found = re.findall(r"([^;(]*)\(groups ([^;]*); VMs ([^;)]*)", err)
    return [(ALREADY in before, groups.split(", "), vms.split(", ")) for before, groups, vms in found]


def refused(live: LiveEngine, *arguments: str) -> list[tuple[bool, list[str], list[str]]]:
    return sentences(live.run(2, "groups", *arguments)[1])


def add(live: LiveEngine, *arguments: str) -> list[tuple[bool, list[str], list[str]]]:
    return refused(live, "add", "new", "--cluster", "blue", *arguments)


def test_only_the_links_of_a_chain_that_tie_the_vms_are_named(serving: Starting) -> None:
    with serving(state(chain("ab", "a b"), chain("bc", "b c"), chain("cd", "c d"))) as live:
        apart = ("--vms-rule", "negative")
        assert add(live, *apart, "--vm", "a", "--vm", "b") == [(False, ["new", "ab"], ["a", "b"])]
        found = add(live, *apart, "--vm", "a", "--vm", "c")
        assert found == [(False, ["new", "ab", "bc"], ["a", "c"])]


def test_the_group_that_closes_a_chain_is_named_with_all_of_it(serving: Starting) -> None:
    with serving(
        state(chain("ab", "a b"), chain("ef", "e f"), group("keep", APART, "a c d", cluster="c1"))
    ) as live:
        found = add(live, "--vms-rule", "positive", "--vm", "b", "--vm", "c")
        assert found == [(False, ["new", "ab", "keep"], ["a", "c"])]


def test_of_host_rules_only_those_are_named_that_want_the_opposite(serving: Starting) -> None:
    others = [group(f"on-{name}", hosts_rule=TOGETHER, vms=name, hosts="h1", cluster="c1") for name in "abc"]
    with serving(state(*others)) as live:
        found = add(live, *HARD_OFF, "--vm", "b", "--host", "north")
        assert found == [(False, ["new", "on-b"], ["b"])]


def spoil(live: LiveEngine) -> None:
    """Let two groups clash over `f`, which the engine does not check when members are added one by one."""
    live.engine.affinity_groups.add_member("off", Members.VMS, "f")


def spoilt_state() -> Snapshot:
    return state(
        group("on", hosts_rule=TOGETHER, vms="f", hosts="h2", cluster="c1"),
        group("off", hosts_rule=APART, vms="", hosts="h2", cluster="c1"),
        group("mine", hosts_rule=TOGETHER, vms="a", hosts="h1", cluster="c1"),
    )


def test_what_clashed_before_is_said_by_itself(serving: Starting) -> None:
    with serving(spoilt_state()) as live:
        spoil(live)
        found = add(live, *HARD_OFF, "--vm", "a", "--host", "north")
        assert found == [(False, ["new", "mine"], ["a"]), (True, ["off", "on"], ["f"])]
        found = add(live, "--vm", "b")
        assert found == [(True, ["off", "on"], ["f"])]
        found = refused(live, "edit", "mine", "--priority", "3")
        assert found == [(True, ["off", "on"], ["f"])]
        assert live.changes == []


def test_to_repair_the_clash_needs_no_more_than_what_is_named(serving: Starting) -> None:
    with serving(spoilt_state()) as live:
        spoil(live)
        assert refused(live, "edit", "on", "--priority", "3") == [(False, ["on", "off"], ["f"])]
        live.run(0, "groups", "edit", "off", "--unchecked", "--remove-vm", "f")
        live.run(0, "groups", "edit", "mine", "--priority", "3")


def test_warnings_name_no_more_than_refusals(serving: Starting) -> None:
    others = [
        group(f"on-{name}", hosts_rule=SOFT_TOGETHER, vms=name, hosts="h1", cluster="c1") for name in "abc"
    ]
    with serving(state(*others, group("off-c", hosts_rule=APART, vms="c", hosts="h1", cluster="c1"))) as live:
        _, err = live.run(
            0, "groups", "add", "new", "--cluster", "c1", *HARD_OFF, "--vm", "b", "--host", "h1"
        )
        assert sentences(err) == [(False, ["new", "on-b"], ["b"])]
