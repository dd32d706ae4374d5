"""One host for each VM and none for two: whether all VMs can be served, and how many can.

Hopcroft and Karp's way: each round serves as many VMs as shortest chains of exchanges can, side by side.
Rounds are few (at most about twice the square root of the size), each looks at every choice twice at
most, and nothing recurses: a thousand VMs that choose among a thousand hosts are quickly matched.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet


def can_all_differ(choices: Sequence[AbstractSet[str]]) -> bool:
    """Whether one can be taken from each of the choices so that no two are the same."""
    sizes = sorted(map(len, choices))
    if all(size > narrower for narrower, size in enumerate(sizes)):
        return True  # the narrowest first, each finds one that is not taken yet
    return most_served(choices) == len(choices)


def most_served(choices: Sequence[AbstractSet[str]]) -> int:
    """From how many of the choices one can be taken so that no two are the same."""
    matching = _Matching(choices)
    while (depths := matching.depths()) is not None:
        matching.grow(depths)
    return matching.size


class _Matching:
    """Who, by number, holds which place; the narrowest choice has the first number."""

    def __init__(self, choices: Sequence[AbstractSet[str]]) -> None:
        self._choices = sorted(choices, key=len)
        self._places: list[str | None] = [None] * len(choices)
        self._holders: dict[str, int] = {}

    @property
    def size(self) -> int:
        return len(self._holders)

    def depths(self) -> dict[int, int] | None:
        """How many exchanges lie between somebody unserved and each, no further than to a free place.

        None if no free place can be reached: then nobody else can be served.
        """
        layer = dict.fromkeys(self._unserved(), 0)
        depths: dict[int, int] = {}
        while layer:
            depths.update(layer)
            further: dict[int, int] = {}
            for number, depth in layer.items():
                for place in self._choices[number]:
                    holder = self._holders.get(place)
                    if holder is None:
                        return depths
                    if holder not in depths:
                        further[holder] = depth + 1
            layer = further
        return None

    def grow(self, depths: dict[int, int]) -> None:
        """Serve as many as such chains of exchanges allow: at least one."""
        untried = [iter(choice) for choice in self._choices]
        for number in self._unserved():
            self._serve(number, depths, untried)

    def _unserved(self) -> list[int]:
        return [number for number, place in enumerate(self._places) if place is None]

    def _serve(self, start: int, depths: dict[int, int], untried: Sequence[Iterator[str]]) -> None:
        """Follow one chain after the other, each choice once in a round, to a free place if there is any."""
        chain = [start]
        while chain:
            for place in untried[chain[-1]]:
                holder = self._holders.get(place)
                if holder is None:
                    self._exchange(chain, place)
                    return
                if depths.get(holder) == len(chain):
                    chain.append(holder)
                    break
            else:
                chain.pop()

    def _exchange(self, chain: Sequence[int], free: str) -> None:
        """The last in the chain takes the free place, each before it the place of the next."""
        place: str | None = free
        for number in reversed(chain):
            if place is not None:
                self._holders[place] = number
            place, self._places[number] = self._places[number], place
