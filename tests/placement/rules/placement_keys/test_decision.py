"""Decisions on single hosts that are spelled out; whole placements are held against the reference."""

from __future__ import annotations

from fractions import Fraction

import pytest

from ovirt_placement.rules.placement_keys.compile import compile_keys
from ovirt_placement.rules.placement_keys.decision import HostState, decide, decide_local
from ovirt_placement.rules.placement_keys.node_keys import node_keys
from tests.placement.rules.placement_keys.parts import capacity, host_state, key


def test_three_tenths_of_100_is_not_above_30() -> None:
    decision = decide(compile_keys([key("A", 0.0)]), 1024, [host_state("h1", {"A": 0.7})])
    assert decision.round == 7
    (one,) = decision.hosts
    assert one.system is not None
    (match,) = one.system.matches
    assert (match.proximity, match.points) == (Fraction(3, 10), 30)


@pytest.mark.parametrize(("allocated_mb", "found"), [(7281, 1), (7282, 2), (7283, 2), (7282 + 910, 2)])
def test_special_keys_meet_a_threshold_exactly(allocated_mb: int, found: int) -> None:
    """A ninth of the memory leaves eight ninths of 90: that is 80, and not above it."""
    there = capacity(memory_mb=9 * 7282, allocated_mb=allocated_mb)
    hosts = [HostState("h1", there, node_keys([], there, ())), host_state("h2", {"A": 0.3})]
    decision = decide(compile_keys([key("#RAM", 0.0, 90.0), key("A", 1.0, 0.1)]), 1024, hosts)
    one, other = decision.hosts
    assert one.system is not None
    assert one.system.total == 90 * (1 - Fraction(allocated_mb, 9 * 7282))
    assert (one.round, other.round) == (found, 1)


def test_local_storage_leaves_the_host_of_the_disk_if_it_is_up() -> None:
    keys = compile_keys([key("A")])
    hosts = [host_state("h1", {"A": 1.0}), host_state("h2", {"A": 0.0})]
    assert decide_local(keys, hosts, "h2").choice == ("h2",)
    down = HostState("h2", capacity(up=False), hosts[1].keys)
    assert decide_local(keys, [hosts[0], down], "h2").failed == "constraint"
