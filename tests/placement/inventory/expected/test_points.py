"""Points that follow single changes are those that the engine's selector would give again."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ovirt_placement.inventory.expected.points import Points

WEIGHTS = st.integers(-3, 6)


@given(
    st.lists(WEIGHTS, min_size=1, max_size=8),
    st.lists(st.tuples(st.integers(0, 7), WEIGHTS), max_size=12),
    st.integers(1, 100),
)
def test_each_host_has_a_point_for_every_other_that_is_not_better(
    weights: list[int], changes: list[tuple[int, int]], factor: int
) -> None:
    points = Points(weights, factor)
    for place, weight in changes:
        weights[place % len(weights)] = weight
        points.change(place % len(weights), weight)
    assert points.of_each == [
        factor * sum(other >= own for at, other in enumerate(weights) if at != place)
        for place, own in enumerate(weights)
    ]
