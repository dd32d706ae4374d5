"""What is asked of rolling maintenance: the hosts of a cluster to be emptied, and the plan of it, as data."""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import msgspec
from msgspec.structs import replace

from ovirt_placement.model import Snapshot, Vm
from ovirt_placement.model.infrastructure import Return
from ovirt_placement.planning.plan import Obstacle, ObstacleKind, Step, StepPurpose
from ovirt_placement.planning.problem.build_problem import PlanOptions, pose
from ovirt_placement.planning.problem.problem import Problem
from ovirt_placement.planning.reservation import Failing, failing
from ovirt_placement.planning.steps import why_staying
from ovirt_placement.rules.elements.placement import LEAVABLE, World, moved_by_engine, why_immovable
from ovirt_placement.rules.elements.resources import vms_coming_to
from ovirt_placement.rules.elements.rule import Allowed, AllowedHosts
from ovirt_placement.rules.elements.verdict import Reason, ReasonKind
from ovirt_placement.rules.failover.outcomes import Domain


@dataclass(frozen=True, kw_only=True, slots=True)
class MaintenanceOptions:
    """What is asked of a plan of rolling maintenance."""

    #: Hosts that may be out at once, at most.
    at_once: int = 1
    back: Return = Return.NONE
    #: How long a host is thought to be out, in seconds.
    host_seconds: float = 1800.0
    #: VMs that may be stopped, by consent, and started again on their host, by id.
    stopped: frozenset[str] = frozenset()
    #: VMs that are to be left where they are, by id, with the reason; and VMs with hosts that are left out.
    frozen: Mapping[str, str] = field(default_factory=dict)
    refused: frozenset[tuple[str, str]] = frozenset()
    #: Hosts that nothing is to be moved to for now, by id.
    closed: frozenset[str] = frozenset()
    #: Failure domains that are to be survived, too, where the cluster reserves for its highly available VMs.
    domains: tuple[Domain, ...] = ()
    #: Whether it is looked into what stands in the way of hosts that no round has.
    explained: bool = True


class Round(msgspec.Struct, frozen=True):
    """Hosts that are out at the same time, and the migrations that empty them before."""

    #: In the order in which they are deactivated, by id. Some may be in maintenance already.
    hosts: tuple[str, ...]
    #: `after` names places in these steps, from 0: no step waits for one of another round but by waiting for
    #: the whole round.
    steps: tuple[Step, ...] = ()
    #: VMs that are stopped before, by consent, and started again on their hosts once these are up.
    stopped: tuple[str, ...] = ()
    #: VMs that the engine itself moves when a host is deactivated, each with the host where the plan expects
    #: it: the hosted engine.
    by_engine: tuple[tuple[str, str], ...] = ()
    #: How long the migrations are estimated to take, and then the maintenance of the hosts.
    migrating_seconds: float = 0.0
    maintenance_seconds: float = 0.0


class BlockedHost(msgspec.Struct, frozen=True):
    """A host that no round takes out, and why."""

    host: str
    #: VMs that cannot leave; none where the host itself is in the way.
    vms: tuple[str, ...]
    #: What is in the way: of rules, VMs and limits the smallest set that was found.
    obstacles: tuple[Obstacle, ...]


class Relaxation(msgspec.Struct, frozen=True):
    """What stands in the way and may be relaxed, and the hosts that get a round as well where it alone is."""

    obstacle: Obstacle
    hosts: tuple[str, ...]


class MaintenancePlan(msgspec.Struct, frozen=True):
    """Rounds of maintenance in one cluster. In every state on the way all hard rules are satisfied that were.

    Hosts come back at the end of each round, before the next begins.
    """

    cluster: str
    at_once: int
    rounds: tuple[Round, ...] = ()
    #: Hosts that were asked for and that no round has.
    blocked: tuple[BlockedHost, ...] = ()
    #: Of what stands in the way of these and may be relaxed: as much as there was time to try.
    relaxations: tuple[Relaxation, ...] = ()
    #: Migrations after the last round that bring VMs back; `after` names places among them.
    back: tuple[Step, ...] = ()
    back_seconds: float = 0.0
    #: VMs that were to be brought back and stay where they went, with the reasons.
    kept: tuple[tuple[str, tuple[Obstacle, ...]], ...] = ()
    #: No plan for the same hosts has fewer rounds, and none with as few rounds fewer migrations before them.
    rounds_at_least: int = 0
    migrations_at_least: int = 0
    #: Whether no legal plan has fewer rounds, nor as many with fewer migrations.
    proven: bool = False

    @property
    def hosts(self) -> tuple[str, ...]:
        """All hosts that have a round, in their order."""
        return tuple(host for one in self.rounds for host in one.hosts)

    @property
    def migrations(self) -> int:
        """How many VMs are migrated before rounds; a VM that is migrated twice counts twice."""
        return sum(len(step.vms) for one in self.rounds for step in one.steps)

    @property
    def seconds(self) -> float:
        """How long all of it is estimated to take."""
        rounds = sum(one.migrating_seconds + one.maintenance_seconds for one in self.rounds)
        return rounds + self.back_seconds


class Leaving(AllowedHosts, frozen=True, kw_only=True):
    """VMs, and the hosts that they are to leave."""

    family: ClassVar[str] = StepPurpose.MAINTENANCE
    asks: ClassVar[str] = "off hosts that are to be empty"
    positive: ClassVar[bool] = False


def leaving(snapshot: Snapshot, hosts: Iterable[str]) -> Iterator[Leaving]:
    """One for each VM that runs on any of these hosts: each may leave though another cannot."""
    form = Allowed(frozenset(hosts), positive=False)
    for host in sorted(form.hosts):
        for vm in snapshot.vms_of_host.get(host, ()):
            yield Leaving(groups=(), vms=(vm.id,), hard=True, priority=0.0, form=form)


#: A host in one of these is emptied, or is empty and comes up again: others may be sent there afterwards.
_COMES_BACK = ("up", "maintenance", "preparing_for_maintenance")
_NOT_UP = ReasonKind(
    "vms_cannot_leave", "the host has status {status}, so that its VMs cannot leave it", veto=True
)

COMES = ReasonKind("vm_comes", "VM {vm} is on its way there", veto=True)

#: In which order hosts are taken: the hosted engine's host after the others, the storage pool manager last.
_FIRST, _HOSTED_ENGINE, _SPM = range(3)


class Reserve:
    """What a cluster is set to survive; nothing is asked where it reserves nothing."""

    def __init__(self, snapshot: Snapshot, cluster: str, domains: Sequence[Domain]) -> None:
        self._cluster = cluster
        self._domains = domains
        reserves = snapshot.cluster_by_id[cluster].ha_reservation
        protects = any(vm.ha and vm.cluster == cluster and vm.host for vm in snapshot.vms)
        self.start = failing(snapshot, cluster, domains) if reserves and protects else None

    def worse(self, state: Snapshot) -> Failing | None:
        """What is lost in a state, if it is worse than at the beginning: other failures, or more VMs in sum.

        What is not known for lack of steps counts as lost, unless it was so at the beginning.
        """
        if self.start is None:
            return None
        found = failing(state, self._cluster, self._domains)
        if found.adds_none_to(self.start) and found.unplaced <= self.start.unplaced:
            return found if found.unknown and not self.start.unknown else None
        return found


@dataclass(frozen=True)
class Site:
    """One cluster. Hosts and VMs are ids."""

    snapshot: Snapshot
    cluster: str
    #: The hosts that are to be maintained, each once.
    asked: tuple[str, ...]
    #: With all that a rule has refused on the way.
    options: MaintenanceOptions
    #: What must stay reserved.
    reserve: Reserve

    @cached_property
    def opened(self) -> Snapshot:
        """The state with those of the hosts up that are empty, in maintenance, and come back."""
        away = {host for host in self.asked if self._status(host) in _COMES_BACK[1:]}
        return World(self.snapshot).activated(away).snapshot if away else self.snapshot

    @cached_property
    def problem(self) -> Problem:
        """All hosts that are up at any time; who may be a target when is not its matter."""
        options = PlanOptions(closed=self.never)
        return pose(self.opened, self.cluster, self.options.frozen, self.options.refused, options)

    @cached_property
    def never(self) -> frozenset[str]:
        """Hosts that nothing is moved to, whenever."""
        return self.options.closed.difference(self.asked)

    @cached_property
    def waiting(self) -> frozenset[str]:
        """Hosts that are no targets before their round, as they are away or on their way there."""
        return frozenset(host for host in self.asked if self._status(host) != "up")

    @cached_property
    def others(self) -> frozenset[str]:
        """Hosts that stay up all the time."""
        return frozenset(self.problem.hosts).difference(self.asked, self.never)

    def returns(self, host: str) -> bool:
        """Whether a host that was maintained is sure enough to be up to reckon with it."""
        return self._status(host) in _COMES_BACK

    @cached_property
    def by_engine(self) -> Mapping[str, str]:
        """VMs that the engine itself moves when their host is deactivated, by that host."""
        return {host: vm.id for host in self.asked for vm in self.on(host) if moved_by_engine(vm)}

    def on(self, host: str) -> tuple[Vm, ...]:
        """Who runs on a host at the start."""
        return self.snapshot.vms_of_host.get(host, ())

    def rank(self, host: str) -> int:
        """Hosts of a higher rank are taken when all of a lower one have been, or are at the same time."""
        if self.snapshot.host_by_id[host].spm:
            return _SPM
        return _HOSTED_ENGINE if host in self.by_engine else _FIRST

    def blocked(self, host: str) -> BlockedHost | None:
        """What stands in the way of a host, all moves tried: itself, or VMs that cannot leave it.

        Of a host that does not answer that is said once, and not of each of its VMs.
        """
        stopped, by_engine = self.options.stopped, self.by_engine.get(host)
        leaving = (vm for vm in self.on(host) if vm.id not in stopped and vm.id != by_engine)
        why = {vm.id: why_staying(self.opened, vm, self.options.frozen) for vm in leaving}
        staying = {vm: obstacle for vm, obstacle in why.items() if obstacle is not None}
        obstacles, status = tuple(staying.values()), self._status(host)
        itself = tuple(Reason(COMES, vm=vm.id) for vm in vms_coming_to(self.snapshot).get(host, ()))
        if self.on(host) and status not in (*_COMES_BACK, *LEAVABLE):
            obstacles, itself = (), (Reason(_NOT_UP, status=status),)
        if itself:
            obstacles = (*obstacles, Obstacle(ObstacleKind.HOST_AWAY, hosts=(host,), reasons=itself))
        return BlockedHost(host=host, vms=tuple(staying), obstacles=obstacles) if obstacles else None

    def stopped_on(self, host: str) -> tuple[str, ...]:
        """VMs that are stopped by consent, since they cannot leave otherwise."""
        consented = (vm for vm in self.on(host) if vm.id in self.options.stopped)
        return tuple(vm.id for vm in consented if why_immovable(self.opened, vm) is not None)

    def memory_mb(self, vms: Iterable[str]) -> int:
        """What VMs take on a host, in MiB."""
        return sum(self.problem.memory_mb[vm] for vm in vms)

    def survives(self, moved: Mapping[str, str], hosts: Sequence[str], done: Set[str]) -> bool:
        """Whether no more is lost than at the start while hosts are out, with VMs that moved elsewhere."""
        if self.reserve.start is None:
            return True
        away = self.waiting - done
        key = frozenset(moved.items()), hosts, away
        if key not in self._known:
            state = World(self.opened).migrated(moved).snapshot
            self._known[key] = self.reserve.worse(self.out(state, hosts, away)) is None
        return self._known[key]

    def out(self, state: Snapshot, hosts: Iterable[str], more: Set[str] = frozenset()) -> Snapshot:
        """The state while hosts are out, with VMs on them down that are stopped, and more hosts out."""
        hosts = tuple(hosts)
        if stopped := {vm for host in hosts for vm in self.stopped_on(host)}:
            down = (replace(vm, host=None, status="down") if vm.id in stopped else vm for vm in state.vms)
            state = replace(state, vms=tuple(down))
        return World(state).deactivated(more | {*hosts}).snapshot

    @cached_property
    def _known(self) -> dict[Hashable, bool]:
        """The answers of `survives`."""
        return {}

    def _status(self, host: str) -> str:
        return self.snapshot.host_by_id[host].status
