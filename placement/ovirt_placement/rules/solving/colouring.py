"""Gives each block a host so that no two that must be apart share one: a colouring, with hosts as colours.

How full a host becomes does not count here; `assignment` answers that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet

from ovirt_placement.rules.solving.budget import Budget
from ovirt_placement.rules.solving.matching import can_all_differ
from ovirt_placement.rules.solving.problem import Block, Hosts, homes_of

#: The colours that are open to each block, by its number.
_Open = Mapping[int, AbstractSet[str]]


def can_be_coloured(blocks: Sequence[Block], hosts: Hosts, budget: Budget) -> bool:
    """Whether all blocks can be coloured at once; exact.

    A block with more colours than rivals can always be coloured last and is set aside. What is left is
    searched, the block with the fewest colours first, and given up where blocks that are all apart have
    too few colours. Raises `BudgetSpentError`.
    """
    colours = homes_of(blocks, hosts)
    if not all(colours):
        return False
    rivals = _rivals(blocks)
    core = _core(colours, rivals)
    all_apart = list(_by_tag(blocks, core).values())
    return _search({number: colours[number] for number in core}, rivals, all_apart, budget)


def _rivals(blocks: Sequence[Block]) -> list[AbstractSet[int]]:
    """Which blocks each must be apart from, itself among them; the same set for those with the same tags."""
    by_tag = _by_tag(blocks, range(len(blocks)))
    of_tags = {
        tags: frozenset(number for tag in tags for number in by_tag[tag])
        for tags in {block.apart for block in blocks}
    }
    return [of_tags[block.apart] for block in blocks]


def _by_tag(blocks: Sequence[Block], numbers: Iterable[int]) -> dict[str, list[int]]:
    """Which blocks, of those with these numbers, are all apart from each other, by the tag that says so."""
    found: dict[str, list[int]] = {}
    for number in numbers:
        for tag in blocks[number].apart:
            found.setdefault(tag, []).append(number)
    return found


def _core(colours: Sequence[AbstractSet[str]], rivals: Sequence[AbstractSet[int]]) -> list[int]:
    """What is left when the blocks that can always be coloured last are taken away, in turn."""
    near = [len(others) for others in rivals]
    left = {number for number, own in enumerate(colours) if near[number] > len(own)}
    easy = [number for number in range(len(colours)) if number not in left]
    while easy:
        for other in rivals[easy.pop()] & left:
            near[other] -= 1
            if near[other] <= len(colours[other]):
                left.discard(other)
                easy.append(other)
    return sorted(left)


def _search(
    colours: _Open, rivals: Sequence[AbstractSet[int]], all_apart: Sequence[Sequence[int]], budget: Budget
) -> bool:
    """Try every way to colour what is left; each step colours one block and narrows its rivals."""
    waiting = [colours]
    while waiting:
        left = waiting.pop()
        budget.spend(1 + len(left))
        if not left:
            return True
        if not all(can_all_differ([left[one] for one in blocks if one in left]) for blocks in all_apart):
            continue
        number = min(left, key=lambda one: (len(left[one]), one))
        for colour in sorted(left[number], reverse=True):
            rest = {
                other: own - {colour} if other in rivals[number] else own
                for other, own in left.items()
                if other != number
            }
            if all(rest.values()):
                waiting.append(rest)
    return False
