"""Where the bars of a plan's timeline stand: a row a host, a bar where a VM leaves and where it arrives."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ovirt_placement.answers.plans.reading import TimedStep

#: In units of the drawing.
_NAMES, _WIDTH, _LANE, _GAP, _TOP = 190, 760, 20, 6, 22
#: A bar is at least so wide that its number can be read.
_LEAST = 18
#: Names of more letters are cut in the drawing, not in its table.
_LETTERS = 24
_TICKS = 4


class Bar(NamedTuple):
    """A migration as one of its hosts sees it."""

    number: int
    x: float
    y: float
    width: float
    height: float
    arrives: bool


class Row(NamedTuple):
    """A host."""

    id: str
    name: str
    short: str
    y: float
    height: float
    #: The numbers of the steps that leave it, and of those that arrive.
    leaving: tuple[int, ...]
    arriving: tuple[int, ...]


class Wait(NamedTuple):
    """From the end of a step to the begin of one that waits for it."""

    before: int
    after: int
    path: str


class Tick(NamedTuple):
    x: float
    seconds: float


class Timeline(NamedTuple):
    """A drawing, and all that stands in it."""

    width: float
    height: float
    rows: tuple[Row, ...]
    bars: tuple[Bar, ...]
    waits: tuple[Wait, ...]
    ticks: tuple[Tick, ...]


def timeline(steps: Sequence[Mapping[str, Any]], times: Sequence[TimedStep]) -> Timeline:
    """The drawing of a plan; hosts in the order in which the plan comes to them."""
    names: dict[str, str] = {}
    ends: dict[str, list[tuple[TimedStep, bool]]] = defaultdict(list)
    for step, time in zip(steps, times, strict=True):
        sources = {vm["from"]["id"]: vm["from"]["name"] for vm in step["vms"]}
        names |= {**sources, step["to"]["id"]: step["to"]["name"]}
        for source in sources:
            ends[source].append((time, False))
        ends[step["to"]["id"]].append((time, True))
    whole = max((one.ends for one in times), default=0.0) or 1.0
    rows, bars, y = list[Row](), list[Bar](), float(_TOP)
    for host, own in ends.items():
        lanes, placed = _lanes(own, whole)
        bars += [
            Bar(
                one.number,
                _x(one.begins, whole),
                y + lane * _LANE + 2,
                _width(one, whole),
                _LANE - 4,
                arrives,
            )
            for (one, arrives), lane in zip(own, placed, strict=True)
        ]
        numbers = [tuple(one.number for one, arrives in own if arrives is way) for way in (False, True)]
        rows.append(Row(host, names[host], _short(names[host]), y, lanes * _LANE, numbers[0], numbers[1]))
        y += lanes * _LANE + _GAP
    ticks = tuple(Tick(_x(whole * at / _TICKS, whole), whole * at / _TICKS) for at in range(_TICKS + 1))
    return Timeline(_NAMES + _WIDTH + 40, y, tuple(rows), tuple(bars), _waits(steps, bars), ticks)


def _lanes(own: Sequence[tuple[TimedStep, bool]], whole: float) -> tuple[int, list[int]]:
    """How many lanes a host needs so that no bars of it overlap, and the lane of each."""
    free, placed = list[float](), list[int]()
    for one, _ in own:
        begins = _x(one.begins, whole)
        lane = next((at for at, until in enumerate(free) if until <= begins), len(free))
        free[lane : lane + 1] = [begins + _width(one, whole)]
        placed.append(lane)
    return len(free), placed


def _waits(steps: Sequence[Mapping[str, Any]], bars: Sequence[Bar]) -> tuple[Wait, ...]:
    arrival = {bar.number: bar for bar in bars if bar.arrives}
    found = []
    for number, step in enumerate(steps, 1):
        for at in step.get("after", ()):
            first, then = arrival[at + 1], arrival[number]
            x, y = first.x + first.width, first.y + first.height / 2
            to = then.y + then.height / 2
            path = f"M{x:.1f} {y:.1f} H{max(x, then.x) + 5:.1f} V{to:.1f} H{then.x:.1f}"
            found.append(Wait(at + 1, number, path))
    return tuple(found)


def _x(seconds: float, whole: float) -> float:
    return round(_NAMES + _WIDTH * seconds / whole, 1)


def _width(one: TimedStep, whole: float) -> float:
    return max(_LEAST, round(_WIDTH * (one.ends - one.begins) / whole, 1))


def _short(name: str) -> str:
    return name if len(name) <= _LETTERS else f"{name[: _LETTERS - 1]}…"
