"""VM affinity as invariants: all members that run, run on one host; or no two members run on one host."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import ClassVar

from ovirt_placement.model import Snapshot
from ovirt_placement.rules.affinity.groups import as_the_engine_unifies, members, unify
from ovirt_placement.rules.elements.constraints import AtMost, Constraint, Same, off_gathering
from ovirt_placement.rules.elements.placement import Placement


class Together(Constraint, frozen=True, kw_only=True):
    """VMs of one positive group, or of several that shared members tie together."""

    family: ClassVar[str] = "vm_affinity"
    asks: ClassVar[str] = "together"
    positive: ClassVar[bool] = True

    #: The members of each group, by its id.
    members_of: Mapping[str, tuple[str, ...]] = {}

    @property
    def form(self) -> Same:
        return Same()

    def offenders(self, placement: Placement) -> tuple[str, ...]:
        """Members off the host that most share."""
        return off_gathering(dict(self.running(placement)))

    def admits(self, vm: str, host: str, placement: Placement) -> bool:
        """Where nobody else runs, or to a host that another member is on or on its way to (F2, F3)."""
        peers = {there for peer in self.vms if peer != vm for there in placement.destinations(peer)}
        return not peers or host in peers

    def violated_groups(self, placement: Placement) -> tuple[str, ...]:
        """None, if they are split only through a VM that is down."""
        return tuple(group for group in self.groups if self._is_split(group, placement))

    def as_engine_lists(self) -> tuple[str, ...]:
        return as_the_engine_unifies(self.members_of.values()) if self.members_of else self.vms

    def _is_split(self, group: str, placement: Placement) -> bool:
        hosts = {placement.runs_on(vm) for vm in self.members_of.get(group, self.vms)}
        return len(hosts - {None}) > 1


class Apart(Constraint, frozen=True, kw_only=True):
    """VMs of one negative group."""

    family: ClassVar[str] = "vm_affinity"
    asks: ClassVar[str] = "apart"
    positive: ClassVar[bool] = False

    @property
    def form(self) -> AtMost:
        return AtMost(most=1)

    def offenders(self, placement: Placement) -> tuple[str, ...]:
        """Members that share their host with another."""
        crowds = Counter(host for _, host in self.running(placement))
        return tuple(vm for vm, host in self.running(placement) if crowds[host] > 1)

    def surplus(self, placement: Placement) -> int:
        hosts = [host for _, host in self.running(placement)]
        return len(hosts) - len(set(hosts))

    def admits(self, vm: str, host: str, placement: Placement) -> bool:
        """To hosts without another member; one that migrates counts at both ends (F4)."""
        return not any(host in placement.occupied(peer) for peer in self.vms if peer != vm)


def between_vms(snapshot: Snapshot, cluster_id: str, *, hard: bool) -> Iterator[Together | Apart]:
    """What the hard or the soft VM groups of a cluster ask for.

    Hard positive ones that share members are one.
    """
    groups = {
        group.id: group
        for group in snapshot.affinity_groups
        if group.cluster == cluster_id and group.vms_rule.enabled and group.vms_rule.enforcing is hard
    }
    for unified in unify(snapshot, groups.values()) if hard else ():
        if unified.groups:
            yield Together(
                groups=unified.groups,
                vms=unified.vms,
                hard=True,
                priority=max(groups[group].priority for group in unified.groups),
                members_of={group: members(snapshot)[group] for group in unified.groups},
            )
    for kind in (Apart,) if hard else (Together, Apart):
        for group in groups.values():
            if group.vms_rule.positive is kind.positive:
                yield kind(
                    groups=(group.id,), vms=members(snapshot)[group.id], hard=hard, priority=group.priority
                )
