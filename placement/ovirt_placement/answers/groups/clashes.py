"""Which conflicts one affinity group takes part in, and which stand among others, whatever becomes of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations_with_replacement
from typing import NamedTuple

from ovirt_placement.model import AffinityGroup, Snapshot
from ovirt_placement.rules.affinity.conflicts import Conflict, ConflictType, find_clashes, merged
from ovirt_placement.rules.affinity.membership import members


class Clashes(NamedTuple):
    """One of each type at most; each names all groups that take part, and no other."""

    own: tuple[Conflict, ...]
    others: tuple[Conflict, ...]


def clashes_of(snapshot: Snapshot, group: AffinityGroup) -> Clashes:
    """Sort the conflicts of a group's cluster by whether they need that group."""
    clashes = _smallest(tuple(_named(snapshot, group)))
    return Clashes(
        own=merged(one for one in clashes if group.id in one.groups),
        others=merged(one for one in clashes if group.id not in one.groups),
    )


def _smallest(clashes: Sequence[Conflict]) -> tuple[Conflict, ...]:
    """Without those that hold another one, which is as grave and needs fewer groups."""
    by_groups = {(one.type, one.savable, frozenset(one.groups)) for one in clashes}

    def holds_another(clash: Conflict) -> bool:
        groups = frozenset(clash.groups)
        return any(
            one_type is clash.type and smaller < groups and (clash.savable or not savable)
            for one_type, savable, smaller in by_groups
        )

    return tuple(one for one in clashes if not holds_another(one))


def _named(snapshot: Snapshot, group: AffinityGroup) -> Iterator[Conflict]:
    """The conflicts, each by itself; if VMs are to be together and apart, also what holds them together."""
    tied = _Ties(snapshot, group)
    for one in find_clashes(snapshot, group.cluster):
        if one.type is ConflictType.TOGETHER_AGAINST_APART:
            yield from _pairs(one, tied)
        else:
            yield one


def _pairs(conflict: Conflict, tied: _Ties) -> Iterator[Conflict]:
    """For VMs that are to be apart, the negative group and a shortest chain that ties each two of them.

    VMs of the same positive groups are tied to all others by the same chains, so they stand in one conflict.
    """
    alike: dict[tuple[str, ...], list[str]] = {}
    for vm in conflict.negative_vms:
        alike.setdefault(tied.groups_of(vm), []).append(vm)
    chains = {vms[0]: tied.chains_from(vms[0]) for vms in alike.values()}
    for one, other in combinations_with_replacement(alike.values(), 2):
        if one is not other:
            yield _tied(conflict, chains[one[0]][other[0]], (*one, *other))
        elif len(one) > 1:
            yield _tied(conflict, chains[one[0]][one[1]], one)


def _tied(conflict: Conflict, chain: Sequence[str], vms: Sequence[str]) -> Conflict:
    pair = tuple(sorted(vms))
    groups = (*conflict.groups, *chain)
    return Conflict(conflict.type, groups, pair, negative_vms=pair, savable=conflict.savable)


class _Ties:
    """The positive VM groups of a cluster, as what ties VMs to one another."""

    def __init__(self, snapshot: Snapshot, group: AffinityGroup) -> None:
        """`group` comes first where several tie the same VMs: it is the one that is asked about."""
        positive = [
            one.id
            for one in snapshot.affinity_groups
            if one.cluster == group.cluster and one.vms_rule.enabled and one.vms_rule.positive
        ]
        self._members: Mapping[str, Sequence[str]] = members(snapshot)
        self._groups_of: dict[str, list[str]] = defaultdict(list)
        for one in sorted(positive, key=lambda each: each != group.id):
            for vm in self._members[one]:
                self._groups_of[vm].append(one)

    def groups_of(self, vm: str) -> tuple[str, ...]:
        """The positive groups that a VM is in."""
        return tuple(self._groups_of[vm])

    def chains_from(self, start: str) -> dict[str, tuple[str, ...]]:
        """By each VM that is tied to this one, the ids of the fewest groups that tie them."""
        chains: dict[str, tuple[str, ...]] = {start: ()}
        frontier, passed = [start], set[str]()
        for vm in frontier:  # which grows
            for group in self._groups_of[vm]:
                if group not in passed:
                    passed.add(group)
                    fresh = [member for member in self._members[group] if member not in chains]
                    chains |= dict.fromkeys(fresh, (*chains[vm], group))
                    frontier += fresh
        return chains
