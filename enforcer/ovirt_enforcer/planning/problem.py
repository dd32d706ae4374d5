"""What the planner has to solve in one cluster: who runs where, who may go where, who must be with whom.

A snapshot boiled down to what a search over placements needs, with every question that does not depend on
the placement (host rules, pinning, hosts that are not up) answered by the rules beforehand.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property

from ovirt_placement.model import Host, Snapshot, Vm
from ovirt_placement.rules.affinity import host_filter
from ovirt_placement.rules.affinity.membership import groups_of, members
from ovirt_placement.rules.affinity.unified_groups import hard_positive_group_of, hard_positive_groups
from ovirt_placement.rules.verdict import Request


@dataclass(frozen=True, slots=True)
class Together:
    """Running VMs of one unified hard positive group: of all groups, `ids`, that shared VMs tie together."""

    ids: tuple[str, ...]
    vms: frozenset[str]


@dataclass(frozen=True, slots=True)
class Apart:
    """Running VMs of one hard negative group."""

    ids: tuple[str, ...]
    vms: frozenset[str]


Group = Together | Apart


@dataclass(frozen=True, slots=True)
class Move:
    """A migration of one VM, or of a whole positive group at once (its closure), to `host`."""

    vms: tuple[str, ...]
    host: str


@dataclass(frozen=True)
class Problem:
    """The start of a search. VMs that may not move are in `where` and have no `allowed` hosts."""

    #: Hosts that may take VMs, the best first; the order decides between plans that are equally short.
    hosts: tuple[str, ...]
    #: MiB that each of `hosts` can still hand out.
    free_mb: Mapping[str, int]
    memory_mb: Mapping[str, int]
    where: Mapping[str, str]
    #: Hosts that a VM is on its way to.
    pending: Mapping[str, tuple[str, ...]]
    #: Hosts that a VM may run on, as far as capacity and other VMs let it.
    allowed: Mapping[str, frozenset[str]]
    together: tuple[Together, ...]
    apart: tuple[Apart, ...]
    #: Of each VM, those that share a hard positive group with it: what the engine's own filter looks at.
    peers: Mapping[str, frozenset[str]]
    #: Of each VM, those that hard positive groups tie to it through any number of VMs.
    all_peers: Mapping[str, frozenset[str]]
    #: Of each VM, those that share a hard negative group with it.
    rivals: Mapping[str, frozenset[str]]

    @cached_property
    def movable(self) -> tuple[str, ...]:
        """VMs that may move at all, the cheapest to migrate first."""
        vms = (vm for vm, hosts in self.allowed.items() if hosts)
        return tuple(sorted(vms, key=lambda vm: (self.memory_mb[vm], vm)))

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """All groups in the order in which they are mended: positive before negative, large before small.

        Of equal ones, the group whose smallest VM id is larger goes first, as in the engine.
        """
        groups: list[Group] = [*self.together, *self.apart]
        groups.sort(key=lambda group: group.ids)
        groups.sort(key=lambda group: min(group.vms), reverse=True)
        groups.sort(key=lambda group: (isinstance(group, Apart), -len(group.vms)))
        return tuple(groups)

    @cached_property
    def gathering_hosts(self) -> dict[Together, tuple[str, ...]]:
        """Hosts where a positive group could be whole, as far as its members may go or already are there."""
        return {
            group: tuple(
                host
                for host in sorted({*self.hosts, *(self.where[vm] for vm in group.vms)})
                if all(self.where[vm] == host or host in self.allowed[vm] for vm in group.vms)
            )
            for group in self.together
        }

    @cached_property
    def fewest_collisions(self) -> dict[Apart, int]:
        """Members of each negative group that must share a host with another, wherever they go."""
        return {group: max(self._without_a_host(group), self._tied(group)) for group in self.apart}

    def _without_a_host(self, group: Apart) -> int:
        return len(group.vms) - most_served({vm: {self.where[vm], *self.allowed[vm]} for vm in group.vms})

    def _tied(self, group: Apart) -> int:
        """Members that a positive group, whole as it is, holds on one host; no legal move splits it."""
        return sum(
            max(0, len(group.vms & other.vms) - 1)
            for other in self.together
            if len({self.where[vm] for vm in other.vms}) == 1
        )


def most_served(choices: Mapping[str, Collection[str]]) -> int:
    """How many keys can have a choice of their own at the same time: a bipartite matching."""
    taken: dict[str, str] = {}

    def serve(key: str, seen: set[str]) -> bool:
        for choice in sorted(choices[key]):
            if choice not in seen:
                seen.add(choice)
                if choice not in taken or serve(taken[choice], seen):
                    taken[choice] = key
                    return True
        return False

    return sum(serve(key, set()) for key in sorted(choices))


def pose(snapshot: Snapshot, cluster: str, held: Collection[str] = ()) -> Problem:
    """The problem of one cluster; VMs in `held` are to be left where they are."""
    hosts = sorted(
        (host for host in snapshot.hosts_of_cluster.get(cluster, ()) if host.up),
        key=lambda host: (host.failover, -host.free_mb, host.id),
    )
    vms = [vm for vm in snapshot.vms if vm.cluster == cluster and _place(snapshot, vm) is not None]
    here = frozenset(vm.id for vm in vms)
    running = frozenset(vm.id for vm in vms if vm.host is not None)
    return Problem(
        hosts=tuple(host.id for host in hosts),
        free_mb={host.id: host.free_mb for host in hosts},
        memory_mb={vm.id: vm.memory_mb for vm in vms},
        where={vm.id: place for vm in vms if (place := _place(snapshot, vm)) is not None},
        pending={vm: snapshot.pending_hosts[vm] for vm in here & snapshot.pending_hosts.keys()},
        allowed={vm.id: _allowed(snapshot, vm, hosts) if vm.id not in held else frozenset() for vm in vms},
        together=tuple(
            Together(unified.groups, there)
            for unified in hard_positive_groups(snapshot)
            if len(there := running & frozenset(unified.vms)) > 1
        ),
        apart=tuple(
            Apart((group.id,), there)
            for group in snapshot.affinity_groups
            if group.vms_rule.hard
            and not group.vms_rule.positive
            and len(there := running & frozenset(members(snapshot)[group.id])) > 1
        ),
        peers={vm: here & _companions(snapshot, vm, positive=True) for vm in here},
        all_peers={vm: here & _tied(snapshot, vm) for vm in here},
        rivals={vm: here & _companions(snapshot, vm, positive=False) for vm in here},
    )


def _place(snapshot: Snapshot, vm: Vm) -> str | None:
    """The host that a VM runs on, or that it is about to start on."""
    return vm.host or next(iter(snapshot.pending_hosts.get(vm.id, ())), None)


def why_immovable(snapshot: Snapshot, vm: Vm) -> str | None:
    """Why a running VM may not be migrated by the enforcer, whatever the target; None if it may."""
    host = snapshot.host_by_id.get(vm.host or "")
    if vm.hosted_engine:
        return "it is the hosted engine"
    if not vm.migratable:
        return "it may not be migrated automatically (pinned, or only its user may)"
    if host is None or not host.up:
        return f"its host is {host.status if host else 'not known'}"
    if vm.status != "up" or vm.id in snapshot.pending_hosts:
        return f"its status is {vm.status}, not up"
    return None


def _allowed(snapshot: Snapshot, vm: Vm, hosts: list[Host]) -> frozenset[str]:
    if why_immovable(snapshot, vm) is not None:
        return frozenset()
    request = Request((vm.id,), tuple(host.id for host in hosts))
    return frozenset(
        verdict.host
        for verdict in host_filter.filter_hosts(snapshot, request)
        if verdict.accepted and (not vm.pinned_hosts or verdict.host in vm.pinned_hosts)
    )


def _companions(snapshot: Snapshot, vm: str, *, positive: bool) -> frozenset[str]:
    """Other members of the hard groups, of one sign, that a VM belongs to."""
    groups = (
        group
        for group in groups_of(snapshot).get(vm, ())
        if group.vms_rule.hard and group.vms_rule.positive is positive
    )
    return frozenset(member for group in groups for member in members(snapshot)[group.id]) - {vm}


def _tied(snapshot: Snapshot, vm: str) -> frozenset[str]:
    unified = hard_positive_group_of(snapshot).get(vm)
    return frozenset(unified.vms) - {vm} if unified else frozenset()
