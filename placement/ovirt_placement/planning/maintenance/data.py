"""What a maintenance plan is asked for and what it consists of, as data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from ovirt_placement.model import Snapshot
from ovirt_placement.model.infrastructure import Return
from ovirt_placement.planning.plan import Obstacle, Step, StepPurpose, Struct
from ovirt_placement.rules.elements.constraints import Allowed, Constraint
from ovirt_placement.rules.elements.placement import Placement
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


class Round(Struct, frozen=True):
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


class BlockedHost(Struct, frozen=True):
    """A host that no round takes out, and why."""

    host: str
    #: VMs that cannot leave; none where the host itself is in the way.
    vms: tuple[str, ...]
    #: What is in the way: of rules, VMs and limits the smallest set that was found.
    obstacles: tuple[Obstacle, ...]


class Relaxation(Struct, frozen=True):
    """What stands in the way and may be relaxed, and the hosts that get a round as well where it alone is."""

    obstacle: Obstacle
    hosts: tuple[str, ...]


class MaintenancePlan(Struct, frozen=True):
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
    #: VMs that were to be brought back and stay where they went, with the reason.
    kept: tuple[tuple[str, Obstacle], ...] = ()
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


class Leaving(Constraint, frozen=True, kw_only=True):
    """VMs, and the hosts that they are to leave."""

    family: ClassVar[str] = StepPurpose.MAINTENANCE
    asks: ClassVar[str] = "off hosts that are to be empty"
    positive: ClassVar[bool] = False

    hosts: frozenset[str]

    @property
    def form(self) -> Allowed:
        return Allowed(self.hosts, positive=False)

    def offenders(self, placement: Placement) -> tuple[str, ...]:
        return tuple(vm for vm, host in self.running(placement) if host in self.hosts)

    def surplus(self, placement: Placement) -> int:
        return len(self.offenders(placement))

    def admits(self, vm: str, host: str, placement: Placement) -> bool:
        return host not in self.hosts


def leaving(snapshot: Snapshot, hosts: Iterable[str]) -> Iterator[Leaving]:
    """One for each VM that runs on any of these hosts: each may leave though another cannot."""
    off = frozenset(hosts)
    for host in off:
        for vm in snapshot.vms_of_host.get(host, ()):
            yield Leaving(groups=(), vms=(vm.id,), hard=True, priority=0.0, hosts=off)
