"""Assigning blocks to hosts: whatever way it is tried, the answer is that of trying everything."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ovirt_placement.rules.assignment import (
    Block,
    Budget,
    BudgetSpentError,
    Resources,
    first_fit,
    proves_impossible,
    search,
)

HOSTS = ("h1", "h2", "h3")
SIZES = st.builds(Resources, st.integers(0, 6), st.integers(0, 6))
BLOCKS = st.lists(
    st.builds(
        Block,
        vms=st.just(("v",)),
        need=SIZES,
        allowed=st.none() | st.frozensets(st.sampled_from(HOSTS)),
        forbidden=st.frozensets(st.sampled_from(HOSTS), max_size=1),
        apart=st.frozensets(st.sampled_from(["x", "y"]), max_size=1),
    ),
    max_size=5,
)
ROOMS = st.fixed_dictionaries(
    {host: st.builds(Resources, st.integers(0, 12), st.integers(0, 12)) for host in HOSTS}
)


def plain(memory: int) -> Block:
    return Block(("v",), Resources(memory))


def is_legal(blocks: list[Block], rooms: dict[str, Resources], homes: tuple[str, ...]) -> bool:
    for host, room in rooms.items():
        here = [block for block, home in zip(blocks, homes, strict=True) if home == host]
        tags = [tag for block in here for tag in block.apart]
        if (
            sum(block.need.memory for block in here) > room.memory
            or sum(block.need.cpu for block in here) > room.cpu
            or len(tags) > len(set(tags))
            or any(host in block.forbidden for block in here)
            or any(block.allowed is not None and host not in block.allowed for block in here)
        ):
            return False
    return True


def can_be_assigned(blocks: list[Block], rooms: dict[str, Resources]) -> bool:
    return any(is_legal(blocks, rooms, homes) for homes in product(rooms, repeat=len(blocks)))


@given(BLOCKS, ROOMS)
def test_search_finds_homes_exactly_if_there_are_any(
    blocks: list[Block], rooms: dict[str, Resources]
) -> None:
    homes = search(blocks, rooms, Budget(100_000))
    assert (homes is not None) == can_be_assigned(blocks, rooms)
    assert homes is None or is_legal(blocks, rooms, homes)


@given(BLOCKS, ROOMS)
def test_counting_and_first_fit_never_err(blocks: list[Block], rooms: dict[str, Resources]) -> None:
    if proves_impossible(blocks, rooms):
        assert not can_be_assigned(blocks, rooms)
    homes, unplaced = first_fit(blocks, rooms, HOSTS)
    assert (homes is None) == bool(unplaced)
    assert homes is None or is_legal(blocks, rooms, homes)


def test_counting_sees_that_few_large_hosts_cannot_hold_many_blocks_of_half_their_size() -> None:
    rooms = {host: Resources(7, 0) for host in HOSTS}
    assert proves_impossible([plain(4)] * 4, rooms)
    assert not proves_impossible([plain(4)] * 3, rooms)


def test_hosts_of_one_size_are_not_alike_where_a_load_is_restricted() -> None:
    """Only h1 for the first, although h3 looks the same to it: the others need that one."""
    allowed = ("h1 h3", "h2 h3", "h2 h3")
    blocks = [Block(("v",), Resources(1), allowed=frozenset(hosts.split())) for hosts in allowed]
    homes = search(blocks, {host: Resources(1, 0) for host in HOSTS}, Budget(1000))
    assert homes is not None
    assert homes[0] == "h1"


def test_search_stops_when_its_budget_ends() -> None:
    with pytest.raises(BudgetSpentError):
        search([plain(4)] * 4, {host: Resources(7, 0) for host in HOSTS}, Budget(3))
