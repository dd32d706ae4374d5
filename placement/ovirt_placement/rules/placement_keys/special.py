"""Special keys: how much of a host's memory and CPUs is handed out, and how busy it is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction

from ovirt_placement.model.record import Record
from ovirt_placement.rules.placement_keys.capacity import Capacity
from ovirt_placement.rules.placement_keys.exact import Ratio
from ovirt_placement.rules.placement_keys.keys import CPU, LOAD, RAM


class Shares(Record, frozen=True):
    """The special keys of all hosts, by place. Hosts differ in size, so each counts in parts of its own."""

    #: Of how many parts the shares of each host are.
    wholes: Sequence[int]
    #: By name; None on hosts without statistics.
    parts: Mapping[str, Sequence[int | None]]

    def at(self, place: int) -> Iterator[tuple[str, Ratio]]:
        """The shares of one host."""
        for name, parts in self.parts.items():
            part = parts[place]
            if part is not None:
                yield name, Fraction(part, self.wholes[place]).as_integer_ratio()

    def exchanged(self, capacities: Sequence[Capacity], places: Iterable[int]) -> Shares:
        """The same where hosts at some places have other capacities now."""
        wholes, parts = list(self.wholes), {name: list(some) for name, some in self.parts.items()}
        for place in places:
            wholes[place], found = _of_host(capacities[place])
            for some, part in zip(parts.values(), found, strict=True):
                some[place] = part
        return Shares(wholes, parts)


NO_SHARES = Shares((), {})

_ONCE = Fraction(1)


def shares(capacities: Iterable[Capacity]) -> Shares:
    """Compute the special keys of hosts: each between 0 and 1."""
    computed = [_of_host(capacity) for capacity in capacities]
    parts = zip(*(parts for _, parts in computed), strict=True)
    return Shares([whole for whole, _ in computed], dict(zip((RAM, CPU, LOAD), parts, strict=False)))


def _of_host(capacity: Capacity) -> tuple[int, tuple[int, int, int | None]]:
    """Into how many parts a host's shares are divided, and the shares of memory, CPUs and load."""
    ram, memory = _share(capacity.allocated_mb, capacity.memory_mb, capacity.memory_ratio)
    vcpus, cpus = _share(capacity.allocated_vcpus, capacity.cpus, capacity.cpu_ratio)
    if capacity.load is None:
        return memory * cpus, (ram * cpus, vcpus * memory, None)
    busy, time = _share(capacity.load.numerator, capacity.load.denominator, _ONCE)
    return memory * cpus * time, (ram * cpus * time, vcpus * memory * time, busy * memory * cpus)


def _share(part: int, whole: int, times: Fraction) -> Ratio:
    """A part of a whole that may be handed out this many times; a host that has nothing is full."""
    most, unit = whole * times.numerator, times.denominator
    return (min(max(part * unit, 0), most), most) if most > 0 else (1, 1)
