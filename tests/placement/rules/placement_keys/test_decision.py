"""Decisions on single hosts that are spelled out; whole placements are held against the reference."""

from __future__ import annotations

from fractions import Fraction

from ovirt_placement.rules.placement_keys.compile import compile_keys
from ovirt_placement.rules.placement_keys.decision import HostState, decide, decide_local
from tests.placement.rules.placement_keys.parts import capacity, host_state, key


def test_three_tenths_of_100_is_not_above_30() -> None:
    decision = decide(compile_keys([key("A", 0.0)]), 1024, [host_state("h1", {"A": 0.7})])
    assert decision.round == 7
    (one,) = decision.hosts
    assert one.system is not None
    (match,) = one.system.matches
    assert (match.proximity, match.points) == (Fraction(3, 10), 30)


def test_local_storage_leaves_the_host_of_the_disk_if_it_is_up() -> None:
    keys = compile_keys([key("A")])
    hosts = [host_state("h1", {"A": 1.0}), host_state("h2", {"A": 0.0})]
    assert decide_local(keys, hosts, "h2").choice == ("h2",)
    down = HostState("h2", capacity(up=False), hosts[1].keys)
    assert decide_local(keys, [hosts[0], down], "h2").failed == "constraint"
