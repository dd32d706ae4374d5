"""Assigning blocks to hosts: whatever way it is tried, the answer is that of trying everything."""

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from contextlib import nullcontext
from itertools import combinations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ovirt_placement.rules.elements.assignment import (
    Block,
    Budget,
    BudgetSpentError,
    Resources,
    can_all_differ,
    can_be_coloured,
    first_fit,
    most_served,
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
        allowed=st.none() | st.frozensets(st.sampled_from([*HOSTS, "elsewhere"])),
        forbidden=st.frozensets(st.sampled_from([*HOSTS, "elsewhere"]), max_size=1),
        apart=st.frozensets(st.sampled_from(["x", "y", "z"]), max_size=2),
    ),
    max_size=6,
)
ROOMS = st.fixed_dictionaries(
    {host: st.builds(Resources, st.integers(0, 12), st.integers(0, 12)) for host in HOSTS}
)


def plain(memory: int) -> Block:
    return Block(("v",), Resources(memory))


def is_legal(
    blocks: list[Block], rooms: dict[str, Resources], homes: tuple[str, ...], *, shared: bool = True
) -> bool:
    """Whether these homes take them; unless room is shared, each has that of its home by itself."""
    for host, room in rooms.items():
        here = [block for block, home in zip(blocks, homes, strict=True) if home == host]
        tags = [tag for block in here for tag in block.apart]
        needed = sum if shared else max
        if (
            needed([0, *(block.need.memory for block in here)]) > room.memory
            or needed([0, *(block.need.cpu for block in here)]) > room.cpu
            or len(tags) > len(set(tags))
            or any(host in block.forbidden for block in here)
            or any(block.allowed is not None and host not in block.allowed for block in here)
        ):
            return False
    return True


def can_be_assigned(blocks: list[Block], rooms: dict[str, Resources], *, shared: bool = True) -> bool:
    every = product(rooms, repeat=len(blocks))
    return any(is_legal(blocks, rooms, homes, shared=shared) for homes in every)


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


CHOICES = st.lists(st.frozensets(st.sampled_from("abcde")), max_size=6)
THOUSAND = 1000


def all_differ(choices: Sequence[frozenset[str]]) -> bool:
    return any(len(set(chosen)) == len(chosen) for chosen in product(*choices))


@given(CHOICES)
def test_most_served_is_the_size_of_the_largest_set_that_can_differ(choices: list[frozenset[str]]) -> None:
    largest = max(
        size
        for size in range(len(choices) + 1)
        if any(all_differ(chosen) for chosen in combinations(choices, size))
    )
    assert (most_served(choices), can_all_differ(choices)) == (largest, largest == len(choices))


class CountedPlace(str):
    """A place that counts how often places are looked up."""

    __slots__ = ()
    lookups = 0

    def __hash__(self) -> int:
        CountedPlace.lookups += 1
        return int(self)


PLACES = [CountedPlace(number) for number in range(THOUSAND + 1)]


def one_chain() -> list[AbstractSet[str]]:
    """Each takes the first of two places, and the last gets one only if all others take their second."""
    starts = [*range(THOUSAND), 0]
    return [dict.fromkeys(PLACES[start : start + 2]).keys() for start in starts]


@pytest.mark.parametrize(
    ("draw", "served"),
    [
        pytest.param(lambda: [frozenset(PLACES[:THOUSAND])] * THOUSAND, THOUSAND, id="everywhere"),
        pytest.param(lambda: [frozenset(PLACES[:500])] * THOUSAND, 500, id="half of them"),
        pytest.param(
            lambda: [frozenset(PLACES[: at + 1]) for at in range(THOUSAND)], THOUSAND, id="more and more"
        ),
        pytest.param(one_chain, THOUSAND + 1, id="one chain"),
    ],
)
def test_a_thousand_look_at_each_choice_a_few_times_at_most(
    draw: Callable[[], Sequence[AbstractSet[str]]], served: int
) -> None:
    choices = draw()
    CountedPlace.lookups = 0
    assert most_served(choices) == served
    assert CountedPlace.lookups <= 8 * sum(map(len, choices))


def left_of(budget: Budget) -> int:
    """How many steps it still gives."""
    steps = 0
    while True:
        try:
            budget.spend()
        except BudgetSpentError:
            return steps
        steps += 1


def test_all_steps_can_be_taken_and_no_more() -> None:
    assert left_of(Budget(3)) == 3


@pytest.mark.parametrize(("steps", "part", "spent", "left"), [(10, 4, 3, 7), (10, 4, 5, 6), (3, 100, 4, 0)])
def test_a_share_ends_alone_and_its_rest_comes_back(steps: int, part: int, spent: int, left: int) -> None:
    """It is never more than what is left."""
    budget = Budget(steps)
    ended = pytest.raises(BudgetSpentError) if spent > min(part, steps) else nullcontext()
    with ended, budget.share(part) as share:
        share.spend(spent)
    assert left_of(budget) == left


@given(BLOCKS, ROOMS)
def test_blocks_can_be_coloured_exactly_if_some_choice_is_right(
    blocks: list[Block], rooms: dict[str, Resources]
) -> None:
    exists = can_be_assigned(blocks, rooms, shared=False)
    assert can_be_coloured(blocks, rooms, Budget(100_000)) == exists


def apart(number: int) -> list[Block]:
    return [Block((f"v{one}",), apart=frozenset({"n"})) for one in range(number)]


@pytest.mark.parametrize(("vms", "possible"), [(1000, True), (1001, False)])
def test_a_large_group_is_judged_without_a_search(vms: int, possible: bool) -> None:
    hosts = {f"h{number}": Resources() for number in range(1000)}
    assert can_be_coloured(apart(vms), hosts, Budget(1 + vms)) is possible


def test_a_search_and_a_colouring_stop_when_their_budget_ends() -> None:
    rooms = {host: Resources(7, 0) for host in HOSTS}
    with pytest.raises(BudgetSpentError):
        search([plain(4)] * 4, rooms, Budget(3))
    with pytest.raises(BudgetSpentError):
        can_be_coloured(apart(4), rooms, Budget(3))
