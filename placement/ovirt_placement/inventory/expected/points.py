"""The points that weights give to hosts, kept while few of the weights change."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable

from ovirt_placement.rules.rank_selector import points_of


class Points:
    """What one weight gives to each host.

    A host gets a point for every other one that is not better, times the weight's factor. So a host that
    becomes worse moves a few others only, which stand between.
    """

    def __init__(self, weights: Iterable[int], factor: int) -> None:
        """Lower is better; hosts are their places in `weights`."""
        self._weights = list(weights)
        self._factor = factor
        #: From the best to the worst.
        self._order = sorted((weight, place) for place, weight in enumerate(self._weights))
        self.of_each = list(points_of(self._weights, factor))

    def change(self, place: int, weight: int) -> None:
        """Let a host have another weight."""
        before, order = self._weights[place], self._order
        if weight == before:
            return
        del order[bisect_left(order, (before, place))]
        low, high = min(before, weight), max(before, weight)
        step = self._factor if weight > before else -self._factor
        for _, other in order[bisect_left(order, (low + 1,)) : bisect_left(order, (high + 1,))]:
            self.of_each[other] += step
        better = bisect_left(order, (weight,)) - bisect_left(order, (before,))
        self.of_each[place] -= self._factor * better
        insort(order, (weight, place))
        self._weights[place] = weight
