"""Colouring: blocks that must be apart get hosts of their own exactly if trying everything finds some."""

from __future__ import annotations

from itertools import combinations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ovirt_placement.rules.affinity.feasibility import can_be_coloured
from ovirt_placement.rules.assignment import Block, Budget, BudgetSpentError, Resources

HOSTS = {"h1": Resources(4, 4), "h2": Resources(4, 1), "h3": Resources(2, 4)}
BLOCKS = st.lists(
    st.builds(
        Block,
        vms=st.just(("v",)),
        need=st.builds(Resources, st.integers(0, 4), st.integers(0, 4)),
        allowed=st.none() | st.frozensets(st.sampled_from([*HOSTS, "elsewhere"]), min_size=1),
        forbidden=st.frozensets(st.sampled_from([*HOSTS, "elsewhere"]), max_size=1),
        apart=st.frozensets(st.sampled_from(["x", "y", "z"]), max_size=2),
    ),
    max_size=6,
)


def suits(block: Block, host: str) -> bool:
    listed = block.allowed is None or host in block.allowed
    room = HOSTS[host]
    fits = block.need.memory <= room.memory and block.need.cpu <= room.cpu
    return listed and host not in block.forbidden and fits


def is_right(blocks: list[Block], chosen: tuple[str, ...]) -> bool:
    pairs = combinations(zip(blocks, chosen, strict=True), 2)
    return all(map(suits, blocks, chosen)) and not any(
        here == there and one.apart & other.apart for (one, here), (other, there) in pairs
    )


@given(BLOCKS)
def test_blocks_can_be_coloured_exactly_if_some_choice_is_right(blocks: list[Block]) -> None:
    exists = any(is_right(blocks, chosen) for chosen in product(HOSTS, repeat=len(blocks)))
    assert can_be_coloured(blocks, HOSTS, Budget(100_000)) == exists


def apart(number: int) -> list[Block]:
    return [Block((f"v{one}",), apart=frozenset({"n"})) for one in range(number)]


@pytest.mark.parametrize(("vms", "possible"), [(1000, True), (1001, False)])
def test_a_large_group_is_judged_without_a_search(vms: int, possible: bool) -> None:
    hosts = {f"h{number}": Resources() for number in range(1000)}
    assert can_be_coloured(apart(vms), hosts, Budget(1 + vms)) is possible


def test_search_stops_when_its_budget_ends() -> None:
    with pytest.raises(BudgetSpentError):
        can_be_coloured(apart(4), HOSTS, Budget(3))
