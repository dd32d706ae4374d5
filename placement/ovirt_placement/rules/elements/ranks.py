"""Ranks of hosts, and Java where the engine's order hangs on it: ids in its maps, and its arithmetic."""

import math
import re
import struct
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate, chain
from operator import add, itemgetter
from typing import Any
from uuid import UUID

from ovirt_placement.model import Snapshot
from ovirt_placement.model.record import Record
from ovirt_placement.rules.elements.verdict import Reason, ReasonKind, Weight

_HALVES = struct.Struct(">qq")
_WORD = 0xFFFFFFFF

#: Where an id stands among others.
Place = tuple[int, int, int, tuple[tuple[int, str], ...]]
_FIRST_SIZE = 16
_SMALL = 64


@lru_cache(maxsize=65536)
def in_order(name: str) -> Place:
    """Sort ids by this as `Guid.compareTo` does: by their halves, each taken as a signed number.

    What is no id of an engine comes after all that are, as people count: vm2 before vm10.
    """
    try:
        upper, lower = _HALVES.unpack(UUID(name).bytes)
    except ValueError:
        parts = re.findall(r"\d+|\D+", name)
        return 1, 0, 0, tuple((int(part), "") if part.isdecimal() else (-1, part) for part in parts)
    return 0, upper, lower, ()


@lru_cache(maxsize=65536)
def spread_hash(name: str) -> int | None:
    """The hash of an id as a `HashMap` spreads it; None for what is no id of an engine.

    Source: java.util.UUID.hashCode and java.util.HashMap.hash.
    """
    try:
        upper, lower = _HALVES.unpack(UUID(name).bytes)
    except ValueError:
        return None
    folded: int = upper ^ lower
    code = (folded >> 32 ^ folded) & _WORD
    return code ^ (code >> 16)


#: With this many keys in a bin a table that is still small grows, where a larger one makes a tree of the bin.
_CROWDED_BY_PUT, _CROWDED_BY_MERGE = 9, 8


class KeyOrder:
    """The keys of one `HashMap`, in their bins; what is no id of an engine counts as hash 0."""

    def __init__(self) -> None:
        self._bins: list[list[str]] = []
        self._known: set[str] = set()

    def put(self, key: str) -> None:
        """Follow a call of `put` or `putIfAbsent`."""
        if not self._bins:
            self._grow()
        if key in self._known:
            return
        bin_of_it = self._bin(key)
        bin_of_it.append(key)
        self._known.add(key)
        if len(bin_of_it) >= _CROWDED_BY_PUT and len(self._bins) < _SMALL:
            self._grow()
        if self._too_full:
            self._grow()

    def merge(self, key: str) -> None:
        """Follow a call of `merge` with a value."""
        if not self._bins or self._too_full:
            self._grow()
        if key in self._known:
            return
        bin_of_it = self._bin(key)
        bin_of_it.insert(0, key)
        self._known.add(key)
        if len(bin_of_it) >= _CROWDED_BY_MERGE and len(self._bins) < _SMALL:
            self._grow()

    def listed(self) -> list[str]:
        """The keys as an iterator comes upon them."""
        return list(chain.from_iterable(self._bins))

    @property
    def _too_full(self) -> bool:
        return len(self._known) > len(self._bins) * 3 // 4

    def _bin(self, key: str) -> list[str]:
        return self._bins[(spread_hash(key) or 0) % len(self._bins)]

    def _grow(self) -> None:
        keys = self.listed()
        self._bins = [[] for _ in range(2 * len(self._bins) or _FIRST_SIZE)]
        for key in keys:
            self._bin(key).append(key)


def put_all(keys: Iterable[str]) -> list[str]:
    """The order of keys that were put one after the other."""
    order = KeyOrder()
    for key in keys:
        order.put(key)
    return order.listed()


_SINGLE = struct.Struct("f")
_LEAST_INT, _MOST_INT = -(2**31), 2**31 - 1


def single(number: float) -> float:
    """The nearest `float` of Java."""
    try:
        (rounded,) = _SINGLE.unpack(_SINGLE.pack(number))
    except OverflowError:
        return math.copysign(math.inf, number)
    return float(rounded)


def rounded(number: float) -> int:
    """`Math.round` of a `float`: halves go up, what is no number is 0, and an `int` ends where it ends."""
    if math.isnan(number):
        return 0
    if math.isinf(number):
        return _MOST_INT if number > 0 else _LEAST_INT
    below = math.floor(number)
    return min(max(below + (number - below >= 0.5), _LEAST_INT), _MOST_INT)


def wrapped(number: int) -> int:
    """What is left of a sum or product in an `int`."""
    return (number - _LEAST_INT) % 2**32 + _LEAST_INT


def quotient(dividend: float, divisor: float) -> float:
    """A division of numbers with a point, which nothing forbids in Java."""
    if divisor == 0:
        return math.copysign(math.inf, dividend) if dividend else math.nan
    return dividend / divisor


#: A dedicated failover host: no weight prefers it.
FAILOVER_HOST = ReasonKind("failover_host", "kept free for a failover")

_KEPT_FREE = (Reason(FAILOVER_HOST),)


def ranked(
    snapshot: Snapshot,
    hosts: Iterable[str],
    burdens: Mapping[str, Any],
    reasons: Mapping[str, tuple[Reason, ...]],
    *,
    unburdened: Any,
) -> tuple[Weight, ...]:
    """Rank hosts by their burdens, the smallest first, in the order asked.

    A host without a burden of its own has the `unburdened` one. Dedicated failover hosts come after
    all others.
    """
    known = snapshot.host_by_id
    asked = [(host, host in known and known[host].failover, burdens.get(host, unburdened)) for host in hosts]
    order = {key: rank for rank, key in enumerate(sorted({(last, burden) for _, last, burden in asked}))}
    return tuple(
        Weight(host, order[last, burden], reasons.get(host, ()) + (_KEPT_FREE if last else ()))
        for host, last, burden in asked
    )


def competition_ranks(burdens: Mapping[str, Any]) -> dict[str, int]:
    """What the engine's own affinity weights say: 1, and how many hosts are better; the best host first.

    Source: ListUtils.forEachWithRanks.
    """
    counts = Counter(burdens.values())
    order = sorted(counts)
    rank_of = dict(zip(order, accumulate(map(counts.__getitem__, order), initial=1), strict=False))
    ranks = ((host, rank_of[burden]) for host, burden in burdens.items())
    return dict(sorted(ranks, key=itemgetter(1)))


class Scored(Record, frozen=True):
    """A host and the points that it has got; more is better."""

    host: str
    points: int


def order_hosts(
    hosts: Sequence[str], weights: Mapping[str | None, Mapping[str, int]], factors: Mapping[str, int]
) -> tuple[Scored, ...]:
    """Order hosts from best to worst.

    Each unit gives a host a point for every other host that it does not prefer to it, times the unit's
    factor (1 where it has none). A host that a unit does not mention has weight 0, the best; a unit that
    mentions none is not asked. Of equals comes first what the engine comes upon first, in the table of its
    hosts: for that, units go by their ids, and what one says stands in the order in which it says it.

    Source: the engine's RankSelectorPolicyUnit, which sorts the entries of a HashMap.
    """
    asked = {unit: by_host for unit, by_host in weights.items() if by_host}
    units = put_all(unit or "" for unit in asked)
    first = (asked[None] if units[0] == "" else asked[units[0]]) if units else {}
    found = _as_the_engine_finds(hosts, first, len(units))
    points = [0] * len(found)
    for unit, by_host in asked.items():
        factor = factors.get(unit, 1) if unit is not None else 1
        points = list(map(add, points, points_of([by_host.get(host, 0) for host in found], factor)))
    return tuple(sorted(map(Scored, found, points), key=lambda one: -one.points))


def points_of(weights: Sequence[int], factor: int) -> Iterator[int]:
    """The points that a unit gives to hosts with these weights: one for every other host not better."""
    counts = Counter(weights)
    points, not_better = {}, -1
    for weight in sorted(counts, reverse=True):
        not_better += counts[weight]
        points[weight] = factor * not_better
    return map(points.__getitem__, weights)


def _as_the_engine_finds(hosts: Sequence[str], first: Mapping[str, int], units: int) -> list[str]:
    """Order hosts by their place in the selector's HashMap; what is no id of an engine stays where it is.

    `first` is what the unit says of hosts that the selector comes upon first, in the order in which it says
    it: two hosts in one bin of the table hang on that. The table for few more hosts than fit grows with the
    second one of the `units`.
    """
    # The size of the table at last; that of a HashMap which is too full grows when it is next called.
    places, most = _FIRST_SIZE, len(hosts) if units > 1 else len(hosts) - 1
    while most > places * 3 // 4:
        places *= 2
    hashes = [spread_hash(host) for host in hosts]
    known = [one % places for one in hashes if one is not None]
    if len(known) == len(hosts) and len(set(known)) < len(known):
        return _followed(hosts, first, units)
    return sorted(hosts, key=lambda host: (spread_hash(host) or 0) % places)


def _followed(hosts: Sequence[str], first: Mapping[str, int], units: int) -> list[str]:
    """Follow each call: the first unit's weights go into one table, and from there, sorted, into another."""
    weights, scores = KeyOrder(), KeyOrder()
    for host in first:
        weights.merge(host)
    for host in hosts:
        weights.put(host)
    for host in sorted(weights.listed(), key=lambda host: first.get(host, 0)):
        scores.merge(host)
    if units > 1:
        scores.merge(hosts[0])
    return scores.listed()
