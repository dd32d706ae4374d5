"""The cluster that a simulation plays in: who runs where, the load of hosts, the violated rules."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from ovirt_placement.model import Snapshot
from ovirt_placement.rules.catalogue import RULES
from ovirt_placement.rules.constraint import Constraint
from ovirt_placement.rules.placement import SnapshotPlacement
from ovirt_placement.rules.rule import Rule
from ovirt_placement.rules.world import World


class Asking(NamedTuple):
    """A constraint with the rule that asks for it."""

    rule: Rule
    constraint: Constraint


class Scene:
    """A cluster in which VMs are moved. All that changes hangs on where its VMs run, and on nothing else."""

    def __init__(self, snapshot: Snapshot, cluster: str) -> None:
        self._world = World.with_load(snapshot)
        self.cluster = cluster
        self._start = snapshot
        #: VMs that are not where they were at first, with their host.
        self._away: dict[str, str] = {}
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
        self._violated: set[int] = set()
        self._look_at(range(len(self._asking)))

    @property
    def snapshot(self) -> Snapshot:
        return self._world.snapshot

    @property
    def placement(self) -> frozenset[tuple[str, str]]:
        """Where the VMs are: equal if and only if each is on the same host."""
        return frozenset(self._away.items())

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts that are up, by their ids, as the engine asks about them (getVdsForClusterWithStatus)."""
        hosts = self.snapshot.hosts_of_cluster.get(self.cluster, ())
        return tuple(sorted(host.id for host in hosts if host.up))

    def violated(self) -> list[Asking]:
        """What is violated now, in the order of the catalogue."""
        return [self._asking[place] for place in sorted(self._violated)]

    def violated_of(self, vms: Iterable[str]) -> list[Asking]:
        """What is violated now of that which concerns any of some VMs."""
        concerned = {place for vm in vms for place in self._places_of.get(vm, ())}
        return [self._asking[place] for place in sorted(self._violated & concerned)]

    def move(self, vms: Iterable[str], target: str) -> None:
        """Let VMs run on another host."""
        moved = tuple(vms)
        self._world = self._world.moved(moved, target)
        for vm in moved:
            if target != self._start.vm_by_id[vm].host:
                self._away[vm] = target
            else:
                self._away.pop(vm, None)
        self._look_at({place for vm in moved for place in self._places_of.get(vm, ())})

    def _look_at(self, places: Iterable[int]) -> None:
        placement = SnapshotPlacement(self.snapshot)
        for place in places:
            if self._asking[place].constraint.keeps(placement):
                self._violated.discard(place)
            else:
                self._violated.add(place)
