"""`why` and `where` where a cluster's policy enables the units of placement keys, and where it does not."""

from __future__ import annotations

from typing import Any

import pytest

from ovirt_placement.model import SchedulingPolicy, Snapshot
from tests.builders import cluster, host, vm
from tests.placement.cli.state_asking import StateAsking, cells
from tests.placement.rules.placement_keys.nodes import key, keyed, node_key

BY_KEYS = SchedulingPolicy(
    filters=("PlacementKeyFilter",), weights={"PlacementKeyWeight": 10, "SoftAffinityWeight": 1}
)


def state(policy: SchedulingPolicy | None, **properties: str) -> Snapshot:
    """A new host that is refused, an old one, and one of middle age with a rival of the VM on it."""
    return keyed(
        cluster(scheduling_policy=policy, scheduling_properties=properties),
        host("h1", name="new"),
        host("h2", name="old"),
        host("h3", name="middle"),
        vm("v1", name="web"),
        vm("v2", "h3", name="rival"),
        keys=(
            key("GEN", 1.0, 80.0, "cluster", resource="cluster1"),
            key("PRIVATE", 1.0, -200.0, "cluster", resource="cluster1"),
            key("Apart", 1.0, -50.0, key_class="customer", resource="v1"),
            *(node_key(f"h{i}", "GEN", age) for i, age in ((1, 1.0), (2, 0.0), (3, 0.5))),
            *(node_key(f"h{i}", "PRIVATE", value) for i, value in ((1, 1.0), (2, 0.0), (3, 0.0))),
        ),
        frozen={"v2": {"Apart": 1.0}},
    )


def table(asking: StateAsking, command: str, of: Snapshot) -> list[list[str]]:
    """The cells of the table, with its title."""
    return [cells(line) for line in asking.text(0, command, of).splitlines()]


def test_why_shows_the_verdict_of_the_keys_with_nearness_score_and_round(asking: StateAsking) -> None:
    title, _, *rows = table(asking, "why web", state(BY_KEYS))
    assert title[3:] == ["by", "system keys", "score", "round", "customer keys", "score"]
    refusal = "the placement keys give it -120, which is not above the last threshold"
    assert rows == [
        ["new", "refused", refusal, "PlacementKeyFilter", "GEN: 80 x 1", "-120"],
        ["PRIVATE: -200 x 1"],
        ["old", "accepted", "GEN: 80 x 0", "0", "10", "0"],
        ["PRIVATE: -200 x 0"],
        ["middle", "accepted", "GEN: 80 x 0.5", "40", "6", "Apart: -50 x 1", "-50"],
        ["PRIVATE: -200 x 0"],
    ]
    new, _, middle = asking.data(0, "why web", state(BY_KEYS))["hosts"]
    assert (new["accepted"], new["reasons"][0]["kind"]) == (False, "keys_refuse")
    assert middle["placement_keys"]["round"] == 6
    assert middle["placement_keys"]["customer"]["total"] == -50


def test_where_orders_hosts_by_keys_with_the_policys_factor(asking: StateAsking) -> None:
    title, _, *rows = table(asking, "where web", state(BY_KEYS))
    assert "PlacementKeyWeight" in title
    assert [row[0] for row in rows if len(row) > 2] == ["middle", "old"]
    best, worst = asking.data(0, "where web", state(BY_KEYS))["hosts"]
    assert [by_keys(one) for one in (best, worst)] == [0, 1]
    tied = 1  # a point of the other unit of the policy, which prefers neither
    assert (best["points"], worst["points"]) == (10 + tied, tied)
    assert best["placement_keys"]["system"]["total"] == 40


@pytest.mark.parametrize(
    "policy", [None, SchedulingPolicy(), SchedulingPolicy(weights={"SoftAffinityWeight": 1})]
)
def test_without_the_units_keys_do_not_count_unless_asked_for(
    asking: StateAsking, policy: SchedulingPolicy | None
) -> None:
    for command in ("why web", "where web"):
        assert "system keys" not in table(asking, command, state(policy))[0]
        assert asking.data(0, command, state(policy))["hosts"][0]["placement_keys"] is None
        assert "system keys" in table(asking, f"{command} --placement-keys", state(policy))[0]
    assert all(one["accepted"] for one in asking.data(0, "why web", state(policy))["hosts"])
    assert not asking.data(0, "why web --placement-keys", state(policy))["hosts"][0]["accepted"]


def test_the_policys_parameters_count(asking: StateAsking) -> None:
    lenient = state(BY_KEYS, placement_final="-150", placement_steps="2", placement_initial="30")
    found = asking.data(0, "why web", lenient)["hosts"]
    assert [one["placement_keys"]["round"] for one in found] == [2, 2, 1]
    greedy = state(BY_KEYS, placement_overhead="9999999")
    for one in asking.data(0, "why web", greedy)["hosts"]:
        kinds = [reason["kind"] for reason in one["reasons"]]
        assert kinds == ["memory_handed_out"]
    impossible = state(BY_KEYS, placement_final="90")
    assert asking.data(0, "why web", impossible)["hosts"][2]["placement_keys"]["round"] == 6


def test_a_reason_that_two_filters_give_is_reported_once(asking: StateAsking) -> None:
    down = keyed(cluster(scheduling_policy=BY_KEYS), host("h1", status="maintenance"), vm("v1"))
    (found,) = asking.data(0, "why v1", down)["hosts"]
    (reason,) = found["reasons"]
    assert reason["kind"] == "host_not_up"
    assert [unit["name"] for unit in reason["by"]] == ["Status", "PlacementKeyFilter"]


def by_keys(host: dict[str, Any]) -> int:
    """The rank that keys give a host."""
    (rank,) = (one["rank"] for one in host["weights"] if one["unit"] == "PlacementKeyWeight")
    return int(rank)
