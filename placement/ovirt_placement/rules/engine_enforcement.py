"""The engine's own enforcer: which VMs it would migrate, who before whom, and where a move is a gain.

Families come before priorities: hard host rules, hard VM rules, soft host rules, soft VM rules.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator
from itertools import chain, groupby

from ovirt_placement.model import AffinityGroup, Snapshot
from ovirt_placement.model.infrastructure import fixed_point
from ovirt_placement.rules.affinity.constraints import listed_hosts
from ovirt_placement.rules.affinity.groups import groups_of, members
from ovirt_placement.rules.elements.constraints import Constraint
from ovirt_placement.rules.elements.placement import Placement
from ovirt_placement.rules.elements.ranks import KeyOrder, in_order, put_all


def gains(snapshot: Snapshot, vm: str, target: str | None) -> bool:
    """Whether soft groups of a VM are better off on the target, which is the best host for it.

    The engine takes a gain in either family, however much the other loses, and may undo it later.
    """
    source = snapshot.vm_by_id[vm].host
    if target is None or source is None or target == source:
        return False
    soft = groups_of(snapshot).get(vm, ())
    by_hosts = _first_difference(_host_levels(snapshot, soft, source, target))
    return by_hosts > 0 or _first_difference(_vm_levels(snapshot, soft, vm, source, target)) > 0


def _first_difference(levels: Iterable[int]) -> int:
    """More than 0 is a gain, less is a loss, by the highest priority in which the hosts differ."""
    return next((level for level in levels if level), 0)


def _by_priority(groups: Iterable[AffinityGroup]) -> Iterator[list[AffinityGroup]]:
    ordered = sorted(groups, key=lambda group: -fixed_point(group.priority))
    for _, same in groupby(ordered, key=lambda group: fixed_point(group.priority)):
        yield list(same)


def _host_levels(
    snapshot: Snapshot, groups: Iterable[AffinityGroup], source: str, target: str
) -> Iterator[int]:
    """By priority, how many groups fewer are violated on the target."""
    soft = [group for group in groups if group.hosts_rule.soft and listed_hosts(snapshot, group)]
    for same in _by_priority(soft):
        yield sum(_right(snapshot, group, target) - _right(snapshot, group, source) for group in same)


def _right(snapshot: Snapshot, group: AffinityGroup, host: str) -> bool:
    return (host in listed_hosts(snapshot, group)) is group.hosts_rule.positive


def _vm_levels(
    snapshot: Snapshot, groups: Iterable[AffinityGroup], vm: str, source: str, target: str
) -> Iterator[int]:
    """By priority, whether positive and negative groups gain: a loss of either sign is one."""
    for same in _by_priority(group for group in groups if group.vms_rule.soft):
        scores: defaultdict[bool, int] = defaultdict(int)
        for group in same:
            hosts = [snapshot.vm_by_id[peer].host for peer in members(snapshot)[group.id] if peer != vm]
            there, here = hosts.count(target), hosts.count(source)
            if group.vms_rule.positive:
                scores[True] += (there > here) - (there < here)
            else:
                scores[False] += (here > 0) - (there > 0)
        yield min(scores.values()) if min(scores.values()) < 0 else max(scores.values())


#: VMs that are equal to the engine: it shuffles them.
Tier = tuple[str, ...]


def tiers(
    violated: Collection[Constraint], placement: Placement, movable: Collection[str]
) -> Iterator[tuple[bool, Tier]]:
    """The VMs of violated rules in the order in which they are tried, and whether a hard rule asks for it.

    A VM may come again, and some cannot move. Members that may go are those that the engine lets go (see
    `buckets`). Only what it draws lots about comes together: VMs on wrong hosts come one by one, and crowds
    that are equal one after the other, in the order of its tables.
    """
    for hard in (True, False):
        mine = [one for one in violated if one.hard is hard]
        for tier in (*_host_tiers(mine, placement), *_vm_tiers(mine, placement, movable)):
            yield hard, tier


def buckets(
    rule: Constraint, placement: Placement, movable: Collection[str], *, as_engine: bool = False
) -> Iterator[Tier]:
    """The members of a violated VM rule that may go: of equal crowds, those on whom it depends first.

    A positive group gathers: the smallest crowd goes first, and one with a member that cannot go stays. A
    negative group parts: only crowds go, the largest first; the engine itself lets none go of which a member
    cannot. With `as_engine` each crowd comes by itself; of equal ones first whose host is first in its table.
    """
    crowds: defaultdict[str, list[str]] = defaultdict(list)
    table = KeyOrder()
    running = dict(rule.running(placement))
    for vm in rule.as_engine_lists() if as_engine else running:
        if vm in running:
            crowds[running[vm]].append(vm)
            if vm in movable:
                table.put(running[vm])
    by_size: defaultdict[int, list[Tier]] = defaultdict(list)
    for host in table.listed():
        vms = crowds[host]
        going = [vm for vm in vms if vm in movable] if rule.positive or len(vms) > 1 else []
        if (rule.positive or as_engine) and len(going) < len(vms):
            going = []
        by_size[len(vms)].append(tuple(going))
    for size in sorted(by_size, reverse=not rule.positive):
        if as_engine:
            yield from by_size[size]
        else:
            yield tuple(chain.from_iterable(by_size[size]))


def _host_tiers(rules: Iterable[Constraint], placement: Placement) -> Iterator[Tier]:
    """VMs on wrong hosts: those with the fewest violated rules first, of equals as in the engine's table."""
    violated = Counter(
        vm for rule in rules if rule.family == "host_affinity" for vm in rule.offenders(placement)
    )
    return ((vm,) for vm in sorted(put_all(violated), key=violated.__getitem__))


def _vm_tiers(
    rules: Iterable[Constraint],
    placement: Placement,
    movable: Collection[str],
) -> Iterator[Tier]:
    """Of each rule between VMs, buckets: soft rules by priority, then the larger ones first."""
    mine = [rule for rule in rules if rule.family == "vm_affinity"]
    mine.sort(key=lambda rule: min(map(in_order, rule.vms)), reverse=True)
    mine.sort(key=lambda rule: (0 if rule.hard else -fixed_point(rule.priority), -len(rule.vms)))
    for rule in mine:
        yield from buckets(rule, placement, movable, as_engine=True)
