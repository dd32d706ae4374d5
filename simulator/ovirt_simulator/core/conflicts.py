"""Conflicts among the affinity groups of a cluster, as the engine finds them when a whole group is saved.

Source: the engine's AffinityRulesConflicts and AffinityRulesUtils, as they behave.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, permutations, product

import msgspec

from . import affinity
from .entities import AffinityGroup
from .event_codes import EventCode, EventType
from .state import State


class Flat(msgspec.Struct, frozen=True):
    """A group with its members, labels resolved."""

    name: str
    vms: frozenset[str]
    hosts: frozenset[str]
    #: True positive, False negative, None disabled.
    vm_polarity: bool | None
    #: The same for the host rule.
    host_polarity: bool | None
    hosts_enforcing: bool


class Conflict(msgspec.Struct, frozen=True):
    """One kind of conflict with all that takes part in it."""

    code: EventType
    groups: frozenset[str]
    vms: frozenset[str]
    hosts: frozenset[str] = frozenset()
    negative_vms: frozenset[str] = frozenset()

    @property
    def savable(self) -> bool:
        """Whether the engine saves the group nevertheless, with a warning event."""
        return self.code.severity == "warning"


def flat(state: State, group: AffinityGroup) -> Flat:
    """Resolve the group's labels."""
    return Flat(
        name=group.name,
        vms=frozenset(vm.id for vm in affinity.member_vms(state, group)),
        hosts=affinity.member_hosts(state, group),
        vm_polarity=group.vms_rule.positive if group.vms_rule.enabled else None,
        host_polarity=group.hosts_rule.positive if group.hosts_rule.enabled else None,
        hosts_enforcing=group.hosts_rule.enforcing,
    )


def find_conflicts(groups: Sequence[Flat]) -> list[Conflict]:
    """Give the conflicts in the engine's order; each of the host kinds at most once, all merged."""
    host_groups = [group for group in groups if group.host_polarity is not None and group.hosts]
    unified = _unified(groups)
    found = [
        _opposite_hosts(host_groups, enforcing=True),
        _opposite_hosts(host_groups, enforcing=False),
        _hosts_against_positive(host_groups, unified),
        _hosts_against_negative(groups),
        _disjoint_positive_hosts(host_groups),
    ]
    return [conflict for conflict in found if conflict is not None] + _vms_against_vms(groups, unified)


class _Merged:
    """Collects all that takes part in one kind of conflict."""

    def __init__(self, code: EventType) -> None:
        self._code = code
        self._groups: set[str] = set()
        self._vms: set[str] = set()
        self._hosts: set[str] = set()

    def add(self, groups: Iterable[Flat], vms: Iterable[str], hosts: Iterable[str]) -> None:
        self._groups.update(group.name for group in groups)
        self._vms.update(vms)
        self._hosts.update(hosts)

    def conflict(self) -> Conflict | None:
        if not self._groups:
            return None
        return Conflict(self._code, frozenset(self._groups), frozenset(self._vms), frozenset(self._hosts))


def _opposite_hosts(groups: Sequence[Flat], *, enforcing: bool) -> Conflict | None:
    """Find positive and negative host groups that share a VM and a host."""
    merged = _Merged(
        EventCode.VM_TO_HOST_CONFLICT_IN_ENFORCING_POSITIVE_AND_NEGATIVE_AFFINITY
        if enforcing
        else EventCode.VM_TO_HOST_CONFLICT_IN_POSITIVE_AND_NEGATIVE_AFFINITY
    )
    for positive, negative in _positive_and_negative(groups):
        if enforcing and not (positive.hosts_enforcing and negative.hosts_enforcing):
            continue
        vms, hosts = positive.vms & negative.vms, positive.hosts & negative.hosts
        if vms and hosts:
            merged.add((positive, negative), vms, hosts)
    return merged.conflict()


def _hosts_against_positive(groups: Sequence[Flat], unified: Sequence[frozenset[str]]) -> Conflict | None:
    """Find VMs that must be together, of which one is drawn to a host and another kept from it."""
    merged = _Merged(EventCode.VM_TO_HOST_CONFLICTS_POSITIVE_VM_TO_VM_AFFINITY)
    for positive, negative in _positive_and_negative(groups):
        hosts = positive.hosts & negative.hosts
        for together in unified:
            drawn, kept = positive.vms & together, negative.vms & together
            if hosts and drawn and kept and len(drawn | kept) > 1:
                merged.add((positive, negative), drawn | kept, hosts)
    return merged.conflict()


def _hosts_against_negative(groups: Sequence[Flat]) -> Conflict | None:
    """Find VMs that must be apart, but are drawn to a common host.

    What draws the second of a pair is groups that the first is not in. The engine tries each pair both ways,
    and names every positive host group that there is.
    """
    merged = _Merged(EventCode.VM_TO_HOST_CONFLICTS_NEGATIVE_VM_TO_VM_AFFINITY)
    positive = [group for group in groups if group.host_polarity]
    for apart in groups:
        if apart.vm_polarity is not False:
            continue
        for first, second in permutations(apart.vms, 2):
            of_first = [group for group in positive if first in group.vms]
            of_second = [group for group in positive if second in group.vms and first not in group.vms]
            hosts = _all_hosts(of_first) & _all_hosts(of_second)
            if hosts:
                merged.add((apart, *positive), (first, second), hosts)
    return merged.conflict()


def _disjoint_positive_hosts(groups: Sequence[Flat]) -> Conflict | None:
    """Find VMs in two positive host groups whose hosts differ at all."""
    merged = _Merged(EventCode.NON_INTERSECTING_POSITIVE_HOSTS_AFFINITY_CONFLICTS)
    for one, other in combinations([group for group in groups if group.host_polarity], 2):
        vms, hosts = one.vms & other.vms, one.hosts ^ other.hosts
        if vms and hosts:
            merged.add((one, other), vms, hosts)
    return merged.conflict()


def _vms_against_vms(groups: Sequence[Flat], unified: Sequence[frozenset[str]]) -> list[Conflict]:
    """Find VMs that must be apart and, by other groups of any kind, together."""
    code = EventCode.VM_TO_VM_AFFINITY_CONFLICTS
    return [
        Conflict(code, frozenset({group.name}), together, frozenset(), group.vms & together)
        for group in groups
        if group.vm_polarity is False
        for together in unified
        if len(group.vms & together) > 1
    ]


def _positive_and_negative(groups: Sequence[Flat]) -> Iterator[tuple[Flat, Flat]]:
    return product(
        [group for group in groups if group.host_polarity],
        [group for group in groups if group.host_polarity is False],
    )


def _all_hosts(groups: Iterable[Flat]) -> frozenset[str]:
    return frozenset(host for group in groups for host in group.hosts)


def _unified(groups: Sequence[Flat]) -> list[frozenset[str]]:
    """Join the positive groups, soft ones too, that share VMs."""
    unified: list[frozenset[str]] = []
    for group in groups:
        if group.vm_polarity and group.vms:
            touching = [vms for vms in unified if vms & group.vms]
            unified = [vms for vms in unified if not vms & group.vms]
            unified.append(group.vms.union(*touching))
    return unified
