"""Where there is nothing to show, a sentence says so, and nothing that was not looked at counts as well."""

from __future__ import annotations

import pytest

from tests.builders import TOGETHER, cluster, group, host, vm
from tests.placement.cli.state_asking import StateAsking


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        ("violations", "No running VM violates a rule."),
        ("violations --vm v1", "No running VM violates a rule of this kind."),
        ("conflicts", "No affinity groups clash, and all hard rules can be satisfied together."),
        ("groups list", "No affinity groups."),
        ("groups list --violated", "No affinity group is violated."),
        ("keys list", "No keys."),
        ("keys check", "No mistakes."),
        ("keys show v1", "No keys have a say about VM v1."),
    ],
)
def test_a_sentence_stands_in_place_of_an_empty_table(
    asking: StateAsking, command: str, sentence: str
) -> None:
    assert asking.run(0, command, host("h1"), vm("v1")) == (f"{sentence}\n", "")


def test_a_vm_that_no_host_may_take(asking: StateAsking) -> None:
    down = host("h1", status="maintenance"), vm("v1", name="web")
    assert (
        asking.run(0, "where web", *down)[0].splitlines()[0]
        == "VM web of cluster cluster1: no host may take it."
    )
    assert (
        asking.run(0, "where web", vm("v1", name="web"))[0]
        == "VM web of cluster cluster1: no host is there.\n"
    )
    assert "has no hosts" in asking.run(2, "why web", vm("v1", name="web"))[1]


def test_keys_choose_among_the_hosts_that_other_filters_admit(asking: StateAsking) -> None:
    """A peer keeps the VM on h4, though to the keys all hosts are alike."""
    hosts = [host(f"h{n}") for n in range(1, 5)]
    together = (vm("v1", name="web"), vm("v2", "h4"), group("g", TOGETHER, "v1 v2"))
    shown, _ = asking.run(0, "keys explain web", cluster(), *hosts, *together)
    assert shown.splitlines()[-1] == "Round 10 (above -10): h4."
    by = "refused by AffinityFilter, the engine's VmAffinityGroups"
    assert [line.split("  ")[-1].strip() for line in shown.splitlines()[2:6]] == [by, by, by, "chosen"]
    full = host("h4", free_mb=0)
    nowhere, _ = asking.run(0, "keys explain web", cluster(), *hosts[:3], full, *together)
    assert nowhere.splitlines()[-1] == "Other filters refuse every host: keys have nothing to choose from."
