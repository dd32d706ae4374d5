"""Assigning loads to hosts: whatever way it is tried, the answer is that of trying everything."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ovirt_placement.rules.solving.assignment import Capacity, Load, first_fit, proves_impossible, search
from ovirt_placement.rules.solving.budget import Budget, BudgetSpentError

HOSTS = ("h1", "h2", "h3")
SIZES = st.builds(Capacity, st.integers(0, 6), st.integers(0, 6))
LOADS = st.lists(
    st.builds(
        Load,
        vms=st.just(("v",)),
        need=SIZES,
        allowed=st.none() | st.frozensets(st.sampled_from(HOSTS)),
        forbidden=st.frozensets(st.sampled_from(HOSTS), max_size=1),
        apart=st.frozensets(st.sampled_from(["x", "y"]), max_size=1),
    ),
    max_size=5,
)
ROOMS = st.fixed_dictionaries(
    {host: st.builds(Capacity, st.integers(0, 12), st.integers(0, 12)) for host in HOSTS}
)


def plain(memory: int) -> Load:
    return Load(("v",), Capacity(memory, 0), None, frozenset(), frozenset())


def is_legal(loads: list[Load], rooms: dict[str, Capacity], homes: tuple[str, ...]) -> bool:
    for host, room in rooms.items():
        here = [load for load, home in zip(loads, homes, strict=True) if home == host]
        tags = [tag for load in here for tag in load.apart]
        if (
            sum(load.need.memory for load in here) > room.memory
            or sum(load.need.cpu for load in here) > room.cpu
            or len(tags) > len(set(tags))
            or any(host in load.forbidden for load in here)
            or any(load.allowed is not None and host not in load.allowed for load in here)
        ):
            return False
    return True


def can_be_assigned(loads: list[Load], rooms: dict[str, Capacity]) -> bool:
    return any(is_legal(loads, rooms, homes) for homes in product(rooms, repeat=len(loads)))


@given(LOADS, ROOMS)
def test_search_finds_homes_exactly_if_there_are_any(loads: list[Load], rooms: dict[str, Capacity]) -> None:
    homes = search(loads, rooms, Budget(100_000))
    assert (homes is not None) == can_be_assigned(loads, rooms)
    assert homes is None or is_legal(loads, rooms, homes)


@given(LOADS, ROOMS)
def test_counting_and_first_fit_never_err(loads: list[Load], rooms: dict[str, Capacity]) -> None:
    if proves_impossible(loads, rooms):
        assert not can_be_assigned(loads, rooms)
    homes, homeless = first_fit(loads, rooms, HOSTS)
    assert (homes is None) == bool(homeless)
    assert homes is None or is_legal(loads, rooms, homes)


def test_counting_sees_that_few_large_hosts_cannot_hold_many_loads_of_half_their_size() -> None:
    rooms = {host: Capacity(7, 0) for host in HOSTS}
    assert proves_impossible([plain(4)] * 4, rooms)
    assert not proves_impossible([plain(4)] * 3, rooms)


def test_hosts_of_one_size_are_not_alike_where_a_load_is_restricted() -> None:
    """Only h1 for the first, although h3 looks the same to it: the others need that one."""
    allowed = ("h1 h3", "h2 h3", "h2 h3")
    loads = [
        Load(("v",), Capacity(1, 0), frozenset(hosts.split()), frozenset(), frozenset()) for hosts in allowed
    ]
    homes = search(loads, {host: Capacity(1, 0) for host in HOSTS}, Budget(1000))
    assert homes is not None
    assert homes[0] == "h1"


def test_search_stops_when_its_budget_ends() -> None:
    with pytest.raises(BudgetSpentError):
        search([plain(4)] * 4, {host: Capacity(7, 0) for host in HOSTS}, Budget(3))
