"""How many examples tests draw: few in the quick suite, many where `make test-properties` asks for them."""

import os
from collections.abc import Sequence
from typing import TypeVar

_Point = TypeVar("_Point")

#: Examples of each property that names no number of its own.
EXAMPLES = int(os.environ.get("EXAMPLES", "30"))


def examples(of_hundred: int) -> int:
    """The number for a property that draws this many when others draw 100."""
    return max(5, of_hundred * EXAMPLES // 100)


def some(points: Sequence[_Point]) -> Sequence[_Point]:
    """Every n-th of the points at which something may happen; all where properties draw 100 examples."""
    return points[:: max(1, 100 // EXAMPLES)]


def seeds(of_hundred: int) -> range:
    """Seeds for a test that plays this many stories when properties draw 100 examples."""
    return range(max(1, of_hundred * EXAMPLES // 100))
