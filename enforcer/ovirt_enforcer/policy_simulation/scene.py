"""The cluster that a simulation plays in: who runs where, what that does to hosts, which rules it breaks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from fractions import Fraction
from typing import NamedTuple

from msgspec.structs import replace

from ovirt_placement.model import Host, Snapshot, Vm
from ovirt_placement.rules.catalogue import RULES
from ovirt_placement.rules.constraint import Constraint
from ovirt_placement.rules.index import share
from ovirt_placement.rules.memory import with_arrived, with_left
from ovirt_placement.rules.placement import SnapshotPlacement
from ovirt_placement.rules.rule import Rule

_FULL_PERCENT = 100


class Asking(NamedTuple):
    """A constraint with the rule that asks for it."""

    rule: Rule
    constraint: Constraint


class Scene:
    """A cluster in which VMs are moved. All that changes hangs on where its VMs run, and on nothing else."""

    def __init__(self, snapshot: Snapshot, cluster: str) -> None:
        self.snapshot = snapshot
        self.cluster = cluster
        self._start = snapshot
        #: VMs that are not where they were at first, with their host.
        self._away: dict[str, str] = {}
        #: Percent of one CPU that a host has to bear more than at first; exact, so that it comes back to 0.
        self._more: defaultdict[str, Fraction] = defaultdict(Fraction)
        self._asking = [
            Asking(rule, constraint)
            for rule in RULES
            if rule.constraints is not None
            for constraint in rule.constraints(snapshot, cluster)
        ]
        self._places_of: defaultdict[str, list[int]] = defaultdict(list)
        for place, (_, constraint) in enumerate(self._asking):
            for vm in constraint.vms:
                self._places_of[vm].append(place)
        self._broken: set[int] = set()
        self._look_at(range(len(self._asking)))

    @property
    def placement(self) -> frozenset[tuple[str, str]]:
        """Where the VMs are: equal if and only if each is on the same host."""
        return frozenset(self._away.items())

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts that are up, by their ids, as the engine asks about them (getVdsForClusterWithStatus)."""
        hosts = self.snapshot.hosts_of_cluster.get(self.cluster, ())
        return tuple(sorted(host.id for host in hosts if host.up))

    def broken(self) -> list[Asking]:
        """What does not hold now, in the order of the catalogue."""
        return [self._asking[place] for place in sorted(self._broken)]

    def broken_of(self, vms: Iterable[str]) -> list[Asking]:
        """What does not hold now of that which concerns any of some VMs."""
        concerned = {place for vm in vms for place in self._places_of.get(vm, ())}
        return [self._asking[place] for place in sorted(self._broken & concerned)]

    def move(self, vms: Iterable[str], target: str) -> None:
        """Let VMs run on another host."""
        moved = [self.snapshot.vm_by_id[vm] for vm in vms]
        hosts = dict(self.snapshot.host_by_id)
        for vm in moved:
            for host, sign in ((vm.host, -1), (target, 1)):
                if host in hosts:
                    self._more[host] += sign * _load(vm)
                    changed = with_arrived(hosts[host], vm) if sign > 0 else with_left(hosts[host], vm)
                    busy = self._cpu_percent(self._start.host_by_id[host])
                    hosts[host] = replace(changed, cpu_percent=busy)
        self._arrive({vm.id: replace(vm, host=target) for vm in moved}, tuple(hosts.values()))

    def _arrive(self, moved: dict[str, Vm], hosts: tuple[Host, ...]) -> None:
        before = self.snapshot
        vms = tuple(moved.get(vm.id, vm) for vm in before.vms)
        self.snapshot = replace(before, vms=vms, hosts=hosts)
        share(self.snapshot, before)
        for vm in moved.values():
            if vm.host is not None and vm.host != self._start.vm_by_id[vm.id].host:
                self._away[vm.id] = vm.host
            else:
                self._away.pop(vm.id, None)
        self._look_at({place for vm in moved for place in self._places_of.get(vm, ())})

    def _cpu_percent(self, at_first: Host) -> float | None:
        """Of a host of which nobody knew it at first, nobody knows it now."""
        if at_first.cpu_percent is None:
            return None
        cpus = at_first.threads or at_first.cores
        now = Fraction(at_first.cpu_percent) + self._more[at_first.id] / cpus
        return float(min(max(now, Fraction(0)), Fraction(_FULL_PERCENT)))

    def _look_at(self, places: Iterable[int]) -> None:
        placement = SnapshotPlacement(self.snapshot)
        for place in places:
            if self._asking[place].constraint.keeps(placement):
                self._broken.discard(place)
            else:
                self._broken.add(place)


def _load(vm: Vm) -> Fraction:
    """Percent of one CPU that a VM uses; where nobody knows, none."""
    return Fraction(vm.usage_cpu_percent or 0) * vm.vcpus
