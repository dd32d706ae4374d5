"""What must not come of a change, as `--fail-if` says it: violated,moves>5,failures<1."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

#: What can be asked about; of each, what stands for it where no number is given.
MEASURES: Final = {
    "violated": ">0",
    "conflicts": ">0",
    "unplaced": ">0",
    "moves": ">0",
    "staying": ">0",
    "failures": "<1",
}

_OPERATORS: Final[Mapping[str, Callable[[int, int], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_FORM: Final = re.compile(r"(\w+)\s*(?:(<=|>=|<|>)\s*(\d+))?\Z")


@dataclass(frozen=True, slots=True)
class Condition:
    """It holds if a measure stands so to a number."""

    measure: str
    sign: str
    number: int

    def __str__(self) -> str:
        return f"{self.measure}{self.sign}{self.number}"


def conditions_of(text: str) -> tuple[Condition, ...]:
    """Read conditions with commas between them. Raises `ValueError` with what is wrong."""
    return tuple(_condition(word.strip()) for word in text.split(","))


def holding(conditions: Iterable[Condition], measured: Mapping[str, int | None]) -> tuple[str, ...]:
    """Those that hold, each with what was measured; of what is not known none does."""
    return tuple(
        f"{one} ({value})"
        for one in conditions
        if (value := measured[one.measure]) is not None and _OPERATORS[one.sign](value, one.number)
    )


def _condition(word: str) -> Condition:
    match = _FORM.match(word)
    if match is None or match[1] not in MEASURES:
        raise ValueError(f'"{word}": write {", ".join(MEASURES)}, or one of them with a number as in moves>5')
    if match[2] is None:
        return _condition(match[1] + MEASURES[match[1]])
    return Condition(match[1], match[2], int(match[3]))
