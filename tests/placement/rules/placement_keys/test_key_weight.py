"""The weight leads by its factor, so it must leave to other weights what keys say nothing about."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ovirt_placement.model import Snapshot
from ovirt_placement.rules.placement_keys.units import rank_hosts
from ovirt_placement.rules.verdict import Request
from tests.builders import TOGETHER, group, host, vm
from tests.placement.rules.placement_keys.parts import key, keyed, node_key

HOSTS = ("h1", "h2", "h3", "h4")
LOTS = st.permutations(HOSTS).map(tuple)
NODE_KEYS = tuple(node_key(name, "GEN", number % 2) for number, name in enumerate(HOSTS))


def ranks(state: Snapshot, lots: tuple[str, ...], **parameters: str) -> dict[str, int]:
    found = rank_hosts(state, Request(("new",), HOSTS, drawn=lots, parameters=parameters))
    return {weight.host: weight.rank for weight in found}


@given(LOTS)
def test_no_lot_is_drawn_for_a_vm_without_keys(lots: tuple[str, ...]) -> None:
    state = keyed(*(host(name) for name in HOSTS), vm("new"), keys=NODE_KEYS)
    assert len(set(ranks(state, lots).values())) == 1


@given(LOTS)
def test_a_lot_decides_between_hosts_that_are_equal_to_a_vm_with_keys(lots: tuple[str, ...]) -> None:
    state = keyed(*(host(name) for name in HOSTS), vm("new"), keys=(*NODE_KEYS, key("GEN")))
    found = ranks(state, lots)
    assert sorted(found, key=found.__getitem__) == sorted(
        HOSTS, key=lambda one: (HOSTS.index(one) % 2 == 0, lots.index(one))
    )
    assert len(set(ranks(state, lots, placement_tie="engine").values())) == 2


@given(LOTS, st.sampled_from(HOSTS))
def test_hosts_that_tear_a_chain_of_hard_groups_come_last(lots: tuple[str, ...], peers_host: str) -> None:
    state = keyed(
        *(host(name) for name in HOSTS),
        vm("new"),
        vm("link"),
        vm("peer", peers_host),
        group("one", TOGETHER, "new link"),
        group("other", TOGETHER, "link peer"),
        keys=(*NODE_KEYS, key("GEN", weight=-200.0)),
    )
    found = ranks(state, lots)
    assert [name for name in HOSTS if found[name] == 0] == [peers_host]
