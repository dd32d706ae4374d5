"""HA admission control: no start that would take the room which restarts need after a failure.

A start is refused after which a failure would not be survived that is survived as things are. A cluster that
is unsafe already refuses only what makes it worse so. Migrations are never refused, nor highly available VMs
that crashed, or while a host has failed: the reserve is there to be used then. They were counted when they
ran, and no restart is to fail by what is kept for restarts. The weight ranks hosts for those that crashed.

What is known of failures now says of most hosts that nothing is lost by a start there: what the evacuations
that were found leave free is enough. Where it is not, failures that may have become worse are judged again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from msgspec.structs import replace

from ovirt_placement.lookups import once_per_snapshot
from ovirt_placement.model import Snapshot, Vm
from ovirt_placement.rules.doubts import doubt, under_way
from ovirt_placement.rules.elements.assignment import Block, Budget, BudgetSpentError, Resources
from ovirt_placement.rules.elements.placement import World
from ovirt_placement.rules.elements.ranks import ranked
from ovirt_placement.rules.elements.resources import (
    cores_of,
    huge_page_kib,
    physical_mb,
    physical_room,
    required_mb,
    used_mb,
)
from ovirt_placement.rules.elements.rule import Rule, UnitKind
from ovirt_placement.rules.elements.verdict import NOT_KNOWN_YET, Reason, ReasonKind, Request, Verdict, Weight
from ovirt_placement.rules.failover.check import Starts
from ovirt_placement.rules.failover.failures import Sweep
from ovirt_placement.rules.failover.measures import NONE, bond_of, by_home, examine, rivalries_of
from ovirt_placement.rules.failover.outcomes import (
    Domain,
    Loss,
    Outcome,
    Survival,
    domains_of,
    has_failed,
    to_survive,
    unknown_hosts,
)

#: Steps for what is known of a cluster as it is: some two seconds in the worst case.
_KNOWN_STEPS = 80_000
#: This many VMs and hosts of a state cost one step when it is made.
PER_STEP = 4


@dataclass(frozen=True)
class Reserve:
    """What failures of a cluster are survived in a state."""

    snapshot: Snapshot
    cluster: str
    measure: Starts
    sweeps: tuple[Sweep, ...]
    #: Hosts that take a VM as things are, and next to all that any failure sends there, once it was asked.
    _homes: dict[str, frozenset[str]] = field(default_factory=dict)

    def bears(self, vm: Vm, host: str, budget: Budget) -> bool:
        """Whether it is certain that a start on a host makes no failure worse.

        Its home must be found, and the host has room next to all evacuations that are known, or others are
        found that leave it the room. Raises `BudgetSpentError`.
        """
        if not self._judges(vm, host):
            return False
        if vm.ha and not all(self._finds_home(vm, host, sweep) for sweep in self.sweeps):
            return False
        if self._leaves_room(vm, host, self._by_host[host]):
            return True
        if any(sweep.failures > 1 for sweep in self.sweeps):
            return False
        taken = {host: Block((vm.id,), Resources(required_mb(vm)), apart=self._rivalries(vm.id))}
        for survival in self._survivals:
            if host in survival.homes.values() and not self._fits_with(vm, host, survival):
                budget.spend(1 + len(survival.homes))
                found = self.measure.spread(survival.hosts, taken)
                if found is None or not self._fits_with(vm, host, found):
                    return False
        return True

    def lost_by(self, vms: tuple[str, ...], host: str, alone: Vm | None, budget: Budget) -> Loss | None:
        """A failure that is survived now, and is not once the VMs are on a host; `alone` is one that starts.

        Raises `BudgetSpentError`.
        """
        if alone is not None and self.bears(alone, host, budget):
            return None
        after = World(self.snapshot).come_to(vms, host).snapshot
        budget.spend((len(after.vms) + len(after.hosts)) // PER_STEP)
        measure = Starts(after, self.cluster)
        for sweep in self.sweeps:
            if sweep.failures == 1:
                found = self._judge_single(sweep, vms, host, measure, budget)
            else:
                found = self._judge_several(sweep, after, measure, budget)
            if found is not None:
                return found
        return None

    def room_mb(self, host: str) -> int:
        """What the evacuations that were found leave free on a host of the cluster, in MiB."""
        return self.snapshot.host_by_id[host].free_mb - self._by_host[host].memory_mb

    @property
    def _survivals(self) -> Iterator[Survival]:
        return (survival for sweep in self.sweeps for survival in sweep.survivals.values())

    @cached_property
    def _by_host(self) -> Mapping[str, _Used]:
        """What evacuations use of each host: of each amount the most that one of them does."""
        found = {host.id: _Used() for host in self.snapshot.hosts_of_cluster.get(self.cluster, ())}
        for survival in self._survivals:
            for home, vms in by_home(survival.homes).items():
                most, now = found[home], self._used(vms)
                found[home] = _Used(
                    max(most.memory_mb, now.memory_mb),
                    max(most.physical_mb, now.physical_mb),
                    most.rivalries | now.rivalries,
                )
        return found

    def _used(self, vms: Iterable[str]) -> _Used:
        known = [self.snapshot.vm_by_id[vm] for vm in vms]
        return _Used(
            sum(map(required_mb, known)),
            sum(map(physical_mb, known)),
            NONE.union(*(self._rivalries(vm.id) for vm in known)),
        )

    def _judges(self, vm: Vm, host: str) -> bool:
        """Whether memory and hard negative groups say all of a VM and a host, and the host has the CPUs."""
        known = self.snapshot.host_by_id.get(host)
        plain = self.measure.restart_check.plain and not huge_page_kib(vm)
        if not plain or known is None or vm.id in bond_of(self.snapshot):
            return False
        return vm.vcpus <= cores_of(known, self.snapshot.cluster_by_id[self.cluster])

    def _leaves_room(self, vm: Vm, host: str, there: _Used) -> bool:
        """Whether a VM leaves a host the room for what comes."""
        known = self.snapshot.host_by_id[host]
        room = physical_room(self.snapshot, known)
        return (
            required_mb(vm) <= known.free_mb - there.memory_mb
            and (room is None or _physical_mb(vm) <= room.memory_mb + room.swap_mb - there.physical_mb)
            and self._rivalries(vm.id).isdisjoint(there.rivalries)
        )

    def _fits_with(self, vm: Vm, host: str, survival: Survival) -> bool:
        """Whether what one failure sends to a host can still start there next to a VM."""
        coming = (name for name, home in survival.homes.items() if home == host)
        return self._leaves_room(vm, host, self._used(coming))

    def _rivalries(self, vm: str) -> frozenset[str]:
        return rivalries_of(self.snapshot).get(vm, NONE)

    def _finds_home(self, vm: Vm, host: str, sweep: Sweep) -> bool:
        """Whether a VM on a host finds another one whichever units fail with this one."""
        homes = self._homes_of(vm) - {host}
        if all(len(unit.hosts) == 1 for unit in sweep.units):
            return len(homes) >= sweep.failures
        return sweep.failures == 1 and all(
            homes.difference(unit.hosts) for unit in sweep.units if host in unit.hosts
        )

    def _homes_of(self, vm: Vm) -> frozenset[str]:
        if vm.id not in self._homes:
            roomy = [
                host
                for host, there in self._by_host.items()
                if self.snapshot.host_by_id[host].up
                and self._judges(vm, host)
                and self._leaves_room(vm, host, there)
            ]
            accepted = self.measure.restart_check.accepted(self.snapshot, (vm.id,), roomy)
            self._homes[vm.id] = frozenset(accepted)
        return self._homes[vm.id]

    def _judge_single(
        self, sweep: Sweep, vms: tuple[str, ...], host: str, measure: Starts, budget: Budget
    ) -> Loss | None:
        """Judge again what may have become worse; each failure is of one unit."""
        everything = not self.measure.restart_check.plain or any(vm in bond_of(self.snapshot) for vm in vms)
        ha = any(self.snapshot.vm_by_id[vm].ha for vm in vms)
        known = True
        for survival in sweep.survivals.values():
            if everything or host in survival.homes.values() or (ha and host in survival.hosts):
                outcome = _examined(measure, survival.hosts, budget)
                if isinstance(outcome, Loss):
                    return Loss(outcome.hosts, outcome.unplaced, survival.domains)
                known = known and isinstance(outcome, Survival)
        if not known:
            raise BudgetSpentError
        return None

    def _judge_several(self, sweep: Sweep, after: Snapshot, measure: Starts, budget: Budget) -> Loss | None:
        """Judge all sets again: another evacuation of one host may meet with those of others."""
        then = Sweep(after, measure, sweep.failures, budget.left, sweep.units)
        found = newly_lost(then, self.measure, budget, sweep.losses.values())
        if found is None and then.safe is None and sweep.safe is not None:
            raise BudgetSpentError
        return found


class _Used(NamedTuple):
    """What one evacuation uses of a host, or the most that any of several does."""

    memory_mb: int = 0
    physical_mb: int = 0
    #: Hard negative groups of the VMs that come.
    rivalries: frozenset[str] = NONE


@once_per_snapshot
def reserve_of(snapshot: Snapshot, cluster: str, failures: int, domains: tuple[Domain, ...]) -> Reserve:
    """What is known of every set of this many failing hosts, and of each failure domain by itself."""
    measure = Starts(snapshot, cluster)
    sweeps = []
    for units, at_once in to_survive(measure.hosts, failures, domains):
        sweep = Sweep(snapshot, measure, at_once, _KNOWN_STEPS, units)
        # Homes that leave more free on each host, where that is possible; of several units at once not, since
        # sets are left out by what homes others have.
        for chosen, survival in list(sweep.survivals.items()) if at_once == 1 else ():
            if even := measure.spread(survival.hosts):
                sweep.survivals[chosen] = replace(even, domains=survival.domains)
        sweeps.append(sweep)
    return Reserve(snapshot, cluster, measure, tuple(sweeps))


def newly_lost(then: Sweep, before: Starts, budget: Budget, known: Collection[Loss] = ()) -> Loss | None:
    """The first loss that was survived before, but for those that hold one which is known.

    The steps that the sweep took are spent, too. Raises `BudgetSpentError`.
    """
    budget.spend(min(budget.left, budget.left - then.left))
    for loss in then.losses.values():
        if any(set(one.hosts) <= set(loss.hosts) for one in known):
            continue
        if isinstance(_examined(before, loss.hosts, budget), Survival):
            return loss
    return None


def _examined(measure: Starts, failed: tuple[str, ...], budget: Budget) -> Outcome:
    if budget.left <= 0:
        raise BudgetSpentError
    examined = examine(measure, failed, budget.left)
    budget.spend(min(examined.steps, budget.left))
    return examined.outcome


def _physical_mb(vm: Vm) -> int:
    """What a VM takes at most of what is physically free, once it runs or when it starts."""
    return max(used_mb(vm), physical_mb(vm))


RESERVE_NEEDED = ReasonKind(
    "reserve_needed", "with it there, {vm} could no longer restart if {status} failed", veto=True
)
RESERVE_USED = ReasonKind("reserve_used", "with it there, {vm} could no longer restart if {status} failed")
RESERVE_UNKNOWN = ReasonKind(
    "reserve_unknown",
    "accepted, since it would have taken too long to find out whether the HA reservation is satisfied then",
    warned=True,
)
#: Steps of all judgements for one question: about half a second, in which the engine waits.
_STEPS = 4_000


def filter_hosts(snapshot: Snapshot, request: Request) -> tuple[Verdict, ...]:
    """Refuse hosts on which the VMs would take the room that highly available VMs need to restart.

    The engine is answered about starts alone; who plans is answered about migrations, too. What is not known
    within the steps that a question may take is accepted, with a note.
    """
    starting = [vm for vm in request.known_vms(snapshot) if vm.host is None]
    # All that starts was counted before it crashed.
    restores = bool(starting) and all(vm.ha and vm.crashed for vm in starting)
    found = {} if restores else {host: (reason,) for host, reason in _judged(snapshot, request)}
    return tuple(Verdict.of_reasons(host, found.get(host, ())) for host in request.candidate_hosts)


def rank_hosts(snapshot: Snapshot, request: Request) -> tuple[Weight, ...]:
    """Rank hosts that the filter would refuse behind all others."""
    found = dict(_judged(snapshot, request))
    used = {host: 1 for host, reason in found.items() if reason.kind is RESERVE_NEEDED}
    reasons = {
        host: (replace(reason, kind=RESERVE_USED) if host in used else reason,)
        for host, reason in found.items()
    }
    return ranked(snapshot, request.candidate_hosts, used, reasons, unburdened=0)


def _judged(snapshot: Snapshot, request: Request) -> Iterator[tuple[str, Reason]]:
    """What speaks against hosts, and which are not known; nothing where this rule is not concerned."""
    known = request.known_vms(snapshot)
    cluster = snapshot.cluster_by_id[known[0].cluster] if known else None
    starting = [vm for vm in known if vm.host is None]
    if cluster is None or not cluster.ha_reservation or (request.as_engine and not starting):
        return
    failed = any(map(has_failed, snapshot.hosts_of_cluster.get(cluster.id, ())))
    if failed and starting and all(vm.ha for vm in starting):
        return
    if why := doubt(snapshot, cluster.id):
        yield from ((host, Reason(NOT_KNOWN_YET, status=why)) for host in request.candidate_hosts)
        return
    vms = tuple(vm.id for vm in known)
    now = _with_expected(snapshot, vms)
    domains = domains_of(now, request.parameters)
    # What is on its way a failure may meet at either end.
    states = filter(None, (now, under_way(now, cluster.id).end))
    reserves = [reserve_of(one, cluster.id, cluster.ha_failures, domains) for one in states]
    alone = starting[0] if len(vms) == len(starting) == 1 else None
    budget = Budget(_STEPS)
    # The engine may know one already that has come to the cluster since.
    here = {host.id for host in now.hosts_of_cluster.get(cluster.id, ())}
    candidates = filter(here.__contains__, request.candidate_hosts)
    for host in sorted(candidates, key=reserves[0].room_mb, reverse=True):
        try:
            lost = next(filter(None, (one.lost_by(vms, host, alone, budget) for one in reserves)), None)
        except BudgetSpentError:
            yield host, Reason(RESERVE_UNKNOWN)
            continue
        if lost is not None:
            failing = lost.domains or [now.host_by_id[one].name for one in lost.hosts]
            yield host, Reason(RESERVE_NEEDED, vm=min(lost.unplaced), status=" and ".join(failing))


def _with_expected(snapshot: Snapshot, vms: tuple[str, ...]) -> Snapshot:
    """The state without what is pending of the VMs themselves, and with what is expected as if it ran.

    Memory of what the engine shows as pending is deducted already; of what is only expected it is not.
    """
    starting = {
        entry.vm: entry.host
        for entry in snapshot.pending
        if entry.expected and entry.vm in snapshot.vm_by_id and snapshot.vm_by_id[entry.vm].host is None
    }
    left = tuple(one for one in snapshot.pending if one.vm not in vms and one.vm not in starting)
    if len(left) == len(snapshot.pending):
        return snapshot
    begun = {vm: host for vm, host in starting.items() if vm not in vms}
    return World(replace(snapshot, pending=left)).running(begun).snapshot


FILTER = Rule(
    name="HaAdmissionFilter", kind=UnitKind.FILTER, on_request=True, notes=unknown_hosts, filter=filter_hosts
)
WEIGHT = Rule(
    name="HaAdmissionWeight",
    kind=UnitKind.WEIGHT,
    on_request=True,
    # It counts before what evens out load, and leaves hard affinity and placement keys first.
    usual_factor=1000,
    weight=rank_hosts,
)
