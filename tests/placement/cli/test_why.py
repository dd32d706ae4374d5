"""`ovirt-placement why` on a state file, as an administrator runs it."""

import pytest

from ovirt_placement.model import SchedulingPolicy
from tests.builders import (
    APART,
    SOFT_TOGETHER,
    TOGETHER,
    Part,
    cluster,
    group,
    host,
    label,
    pending,
    rule,
    snapshot,
    vm,
)
from tests.placement.cli.live_engine import StateAsking, cells

STATE = snapshot(
    cluster(),
    cluster("cluster2"),
    host("h1", name="north"),
    host("h2", name="south", free_mb=100),
    host("h3", name="east", status="maintenance"),
    host("far", cluster="cluster2"),
    vm("v1", name="web"),
    vm("v2", "h1", name="cache"),
    vm("v3", "h1", name="rival"),
    vm("twin1", name="twin"),
    vm("twin2", name="twin"),
    group("g1", TOGETHER, "v1 v2", name="near"),
    group("g2", APART, "v1 v3", name="far"),
)


def test_table_names_rule_group_vm_number_and_unit_for_each_host(asking: StateAsking) -> None:
    title, _, *rows = map(cells, asking.text(0, "why web", STATE).splitlines())
    assert title == ["host", "verdict", "why", "by"]
    both = "AffinityFilter, the engine's VmAffinityGroups"
    together = "must run with VM cache, which is on host north (affinity group near)"
    assert rows == [
        ["north", "refused", "must not run with VM rival, which is on host north (affinity group far)", both],
        ["south", "refused", "only 100 MiB of its memory are not handed out yet", "the engine's Memory"],
        [together, both],
        ["east", "refused", "is not up", "the engine's Status"],
        [together, both],
    ]


def reported(asking: StateAsking, *parts: Part, place: str = "h2") -> list[list[str]]:
    """What is said of VM a on a host: sentences, each with the units whose it is."""
    (answer,) = asking.data(0, f"why a {place}", host("h1"), host("h2"), *parts)["hosts"]
    return [
        [reason["sentence"], *(unit["name"] for unit in reason["by"])]
        for reason in answer["reasons"]
        if reason["veto"]
    ]


def test_the_engine_alone_refuses_what_our_units_take_in_another_way(asking: StateAsking) -> None:
    nowhere = group("g", vms="a", hosts_rule=TOGETHER)
    assert reported(asking, vm("a"), nowhere) == [
        [
            "the engine does not allow VM a on this host: affinity group g ties it to hosts and lists none",
            "VmToHostsAffinityGroups",
        ]
    ]
    abroad = (cluster(), cluster("c2"), host("far", cluster="c2"), vm("x", "far", cluster="c2"))
    with_x = group("g", TOGETHER, "a", vm_labels=("l",))
    assert reported(asking, vm("a"), *abroad, label("l", "x"), with_x) == []
    because = (
        "the engine runs it with VM x of another cluster, which is on its way to host far (affinity group g)"
    )
    coming = pending("x", "far")
    assert reported(asking, vm("a"), *abroad, label("l", "x"), with_x, coming) == [
        [because, "VmAffinityGroups"]
    ]


def test_our_unit_alone_refuses_by_a_chain_and_both_by_a_peer(asking: StateAsking) -> None:
    chain = (group("g1", TOGETHER, "a b"), group("g2", TOGETHER, "b c"))
    sentence = "must run with VM {}, which is on host h1 (affinity group {})".format
    assert reported(asking, vm("a"), vm("b"), vm("c", "h1"), *chain) == [
        [sentence("c", "g2"), "AffinityFilter"]
    ]
    assert reported(asking, vm("c", "h1"), vm("a"), vm("b", "h1"), *reversed(chain)) == [
        [sentence("b", "g1"), "AffinityFilter", "VmAffinityGroups"]
    ]


def test_a_vm_that_leaves_its_host_with_its_peers_is_judged_with_them_by_the_engine(
    asking: StateAsking,
) -> None:
    there = (vm("a", "h1"), vm("b", "h1"), group("g", TOGETHER, "a b"))
    assert reported(asking, *there) == []
    rival = (vm("r", "h2"), group("far", APART, "b r"))
    assert reported(asking, *there, *rival) == [
        ["the engine runs it apart from VM r, which is on host h2 (affinity group far)", "VmAffinityGroups"]
    ]


def test_soft_rule_that_no_unit_weighs_is_noted_once_below_the_table(asking: StateAsking) -> None:
    soft = group("g", SOFT_TOGETHER, "v1 v2", name="near")
    parts = (cluster(scheduling_policy=SchedulingPolicy()), host("h1"), host("h2"), vm("v1"), vm("v2"), soft)
    note = (
        "affinity group near has a soft rule for VM v1,"
        " and the cluster's policy does not enable SoftAffinityWeight"
    )
    assert asking.text(0, "why v1", *parts).splitlines()[-2:] == ["", note]
    answer = asking.data(0, "why v1", *parts)
    assert [reason["unit"] for reason in answer["notes"]] == ["SoftAffinityWeight"]
    assert [host["accepted"] for host in answer["hosts"]] == [True, True]


@pytest.mark.parametrize(
    ("filters", "said"),
    [((), True), (("AffinityFilter", "HostAffinityFilter", "PlacementRuleFilter"), False)],
)
def test_a_filter_that_the_engine_does_not_ask_refuses_nothing_and_that_is_said(
    asking: StateAsking, filters: tuple[str, ...], said: bool
) -> None:
    """h1 is licensed for v2; h2 has no memory for v1 either, which the engine does ask for."""
    parts = (
        cluster(scheduling_policy=SchedulingPolicy(filters=filters)),
        host("h1", name="north"),
        host("h2", name="south", free_mb=1),
        vm("v1", name="web"),
        vm("v2", name="cache"),
        rule("licensed", "exclusive_hosts", "v2", hosts="h1 h2"),
    )
    text = asking.text(0, "why web", *parts)
    assert "placement rule licensed" in text
    assert ("it may place the VM on north (ovirt-placement setup)" in text) == said
    found = asking.data(0, "why web", *parts)["not_asked"]
    assert [(one["unit"], one["hosts"]) for one in found] == (
        [("PlacementRuleFilter", ["h1"])] if said else []
    )


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ("wep", 'no VM "wep"; did you mean "web"?'),
        ("twin", 'VM "twin" is ambiguous: say twin1 (down) or twin2 (down)'),
        ("web norht", 'no host of its cluster "norht"; did you mean "north"?'),
        ("web far", 'no host of its cluster "far"'),
    ],
)
def test_unknown_or_ambiguous_name_is_one_line_that_helps(
    asking: StateAsking, arguments: str, complaint: str
) -> None:
    assert asking.run(2, f"why {arguments}", STATE) == ("", f"ovirt-placement: {complaint}\n")


def test_refused_everywhere_is_an_exit_status_where_that_is_asked(asking: StateAsking) -> None:
    for vm_and_host, refused in (("web", 1), ("cache", 0), ("cache south", 1)):
        asking.run(0, f"why {vm_and_host}", STATE)
        for asked in ("--fail-if-refused", "--fail-if-refused --json"):
            assert asking.run(refused, f"why {vm_and_host} {asked}", STATE)[1] == ""
