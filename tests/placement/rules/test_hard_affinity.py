"""Hard groups that go on through VMs that are down: who is there leads, or else the first of them."""

from __future__ import annotations

from msgspec.structs import replace

from ovirt_placement.model import Pending, SchedulingPolicy, Snapshot
from ovirt_placement.rules.affinity.groups import chained_peers
from ovirt_placement.rules.elements.verdict import Request
from ovirt_placement.rules.hard_affinity import rank_hosts
from tests.builders import APART, SOFT_TOGETHER, TOGETHER, cluster, group, host, snapshot, vm

HOSTS = ("h1", "h2", "h3")
#: a and c run together through b, which is down; x is of a's group alone.
CHAIN = (
    group("ab", TOGETHER, "a b"),
    group("bc", TOGETHER, "b c"),
    group("soft", SOFT_TOGETHER, "a s"),
    group("apart", APART, "c n"),
)


def world(*vms: str, on: dict[str, str] | None = None) -> Snapshot:
    placed = on or {}
    return snapshot(*map(host, HOSTS), *(vm(name, placed.get(name)) for name in (vms or "abcsn")), *CHAIN)


def ranks(state: Snapshot, name: str) -> dict[str, int]:
    return {one.host: one.rank for one in rank_hosts(state, Request((name,), HOSTS))}


def expecting(state: Snapshot, name: str, at: str) -> Snapshot:
    return replace(state, pending=(*state.pending, Pending(name, at, 1024, expected=True)))


def test_the_host_of_a_vm_behind_one_that_is_down_comes_first() -> None:
    assert ranks(world(on={"a": "h2"}), "c") == {"h1": 1, "h2": 0, "h3": 1}


def test_so_does_the_host_on_which_it_is_only_expected() -> None:
    assert ranks(expecting(world(), "a", "h3"), "c") == {"h1": 1, "h2": 1, "h3": 0}


def test_the_engine_sees_the_vms_own_groups_so_hosts_tie() -> None:
    assert chained_peers(world(), "b") == ()
    assert set(ranks(world(on={"a": "h2"}), "b").values()) == {0}
    assert set(ranks(world(on={"s": "h2"}), "s").values()) == {0}


def test_the_first_of_a_chain_goes_where_most_memory_is_left() -> None:
    state = replace(
        world(),
        hosts=tuple(host(name, free_mb=mb) for name, mb in zip(HOSTS, (8000, 9000, 9500), strict=True)),
    )
    assert ranks(state, "c") == {"h1": 1, "h2": 1, "h3": 0}
    assert ranks(expecting(state, "s", "h3"), "c") == {"h1": 1, "h2": 0, "h3": 1}
    assert ranks(expecting(state, "c", "h1"), "c") == {"h1": 1, "h2": 1, "h3": 0}


def test_it_leaves_the_first_to_the_engine_which_alone_knows_where_a_peer_is() -> None:
    assert set(ranks(expecting(world(), "n", "h1"), "c").values()) == {0}


def test_it_leaves_the_first_to_the_keys_of_the_vm_whose_weight_leads_as_well() -> None:
    weights = {"HardAffinityWeight": 100, "PlacementKeyWeight": 100}
    policy = SchedulingPolicy(filters=(), weights=weights)
    keyed = replace(world(), clusters=(cluster(scheduling_policy=policy),))
    assert sorted(ranks(keyed, "c").values()) == [0, 1, 1], "it has no keys"
    vms = tuple(replace(one, custom_properties={"placement_keys": "Repel1:1:-100"}) for one in keyed.vms)
    assert set(ranks(replace(keyed, vms=vms), "c").values()) == {0}
    by_engine = Request(("c",), HOSTS, parameters={"placement_tie": "engine"})
    found = rank_hosts(replace(keyed, vms=vms), by_engine)
    assert sorted(one.rank for one in found) == [0, 1, 1], "the key weight may tie"
