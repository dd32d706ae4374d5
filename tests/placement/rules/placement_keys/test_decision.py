"""Decisions on single hosts that are spelled out; whole placements are held against the reference."""

from __future__ import annotations

from fractions import Fraction

import pytest

from tests.placement.rules.placement_keys.nodes import decide, node, place, world
from tests.placement.rules.placement_keys.parts import key, node_key


def test_three_tenths_of_100_is_not_above_30() -> None:
    decision = place([node("h1", [node_key("h1", "A", 0.7)])], [key("A", 0.0)])
    assert decision.round == 7
    (one,) = decision.hosts
    assert one.system is not None
    (match,) = one.system.matches
    assert (match.proximity, match.points) == (Fraction(3, 10), 30)


@pytest.mark.parametrize(("allocated_mb", "found"), [(7281, 1), (7282, 2), (7283, 2), (7282 + 910, 2)])
def test_special_keys_meet_a_threshold_exactly(allocated_mb: int, found: int) -> None:
    """A ninth of the memory leaves eight ninths of 90: that is 80, and not above it."""
    hosts = [
        node("h1", memory_mb=9 * 7282, allocated_mb=allocated_mb),
        node("h2", [node_key("h2", "A", 0.3)]),
    ]
    decision = place(hosts, [key("#RAM", 0.0, 90.0), key("A", 1.0, 0.1)], memory_mb=1024)
    one, other = decision.hosts
    assert one.system is not None
    assert one.system.total == 90 * (1 - Fraction(allocated_mb, 9 * 7282))
    assert (one.round, other.round) == (found, 1)


def test_local_storage_leaves_the_host_that_the_engine_offers_whatever_keys_say() -> None:
    hosts = [node("h1", [node_key("h1", "A", 1.0)]), node("h2", [node_key("h2", "A", 0.0)], up=False)]
    local = world(hosts, [key("A")], local_storage=True)
    for offered in (["h2"], ["h1"], []):
        decision = decide(local, offered)
        assert (decision.choice, decision.candidates) == (tuple(offered), tuple(offered))
        assert decision.local_storage
        assert decision.hosts == ()
