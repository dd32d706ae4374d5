"""One look at the engine: a reading of it, with what the store remembers, for all decisions of a moment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from ovirt_enforcer import configured
from ovirt_enforcer.actions.migrate_vm import restless
from ovirt_enforcer.actions.migrate_vm.backoff import Backoff
from ovirt_enforcer.actions.migrate_vm.projection import Projection, projected
from ovirt_enforcer.actions.migrate_vm.restless import Restless
from ovirt_enforcer.gates.admission import Gates
from ovirt_enforcer.maintenance.homes import WayHome
from ovirt_enforcer.service.parts import Parts
from ovirt_enforcer.service.planners import PlanQuestion
from ovirt_enforcer.settings import EnforcerSettings
from ovirt_placement.model import Snapshot
from ovirt_placement.planning.maintenance.leaving import leaving
from ovirt_placement.planning.plan import Plan
from ovirt_placement.store.intents import Intent


@dataclass(frozen=True)
class Look:
    """What is known at one moment; the gates were made before the snapshot was read."""

    parts: Parts
    snapshot: Snapshot
    gates: Gates
    #: Migrations whose end is not known, and those that have ended, the oldest first.
    open_intents: Sequence[Intent]
    history: Sequence[Intent]
    #: VMs that somebody else moves to and fro, by id.
    restless: Mapping[str, Restless]
    #: Of the lease, from before all of this was read.
    epoch: int
    #: When that began, and until when steps are begun on it, by the daemon's clock.
    began: float
    fresh_until: float
    #: Hosts whose VMs are to be migrated away, for maintenance.
    emptied: tuple[str, ...] = ()
    #: VMs that maintenance runs bring back, by the cluster.
    ways_home: Mapping[str, WayHome] = field(default_factory=dict)

    @property
    def _settings(self) -> EnforcerSettings:
        return self.parts.settings

    @cached_property
    def projection(self) -> Projection:
        """The cluster as it will be once what is under way has ended."""
        return projected(self.snapshot, self.open_intents)

    @cached_property
    def backoff(self) -> Backoff:
        """What the history holds back."""
        return Backoff(self._settings, self.snapshot, self.history, self.parts.origins)

    def frozen(self, plan: Plan | None) -> dict[str, str]:
        """VMs that are to be left alone, with the reason; `plan` is the one under way, if any."""
        return {
            **restless.frozen(self.snapshot, self.restless),
            **self.backoff.frozen,
            **self.gates.frozen(self.snapshot, plan),
        }

    def seconds_left(self, cluster: str) -> float:
        """How long until time alone lets something be done in a cluster that waits now; infinite if not."""
        return min(
            self.gates.seconds_left(self.snapshot, cluster),
            self.backoff.seconds_left(cluster),
            *(one.left_seconds for one in self.restless_in(cluster).values()),
        )

    def moves_in(self, cluster: str) -> bool:
        """Whether anything of a cluster is on its way, or not known to have arrived."""
        if any(intent.cluster == cluster for intent in self.open_intents):
            return True
        return any(self.snapshot.vm_by_id[vm].cluster == cluster for vm in self.projection.moving)

    def restless_in(self, cluster: str) -> dict[str, Restless]:
        """The VMs of one cluster that somebody else moves to and fro."""
        known = self.snapshot.vm_by_id
        return {vm: found for vm, found in self.restless.items() if known[vm].cluster == cluster}

    def spared_for_restless(self, cluster: str) -> dict[str, str]:
        """Their soft groups, with the reason."""
        return restless.spared(self.snapshot, self.restless_in(cluster))

    def question(
        self, cluster: str, plan: Plan | None, *, simulate: bool, seed: int | None = None
    ) -> PlanQuestion:
        """What a planner is to be asked for a cluster; with a seed, what was drawn before is drawn again."""
        spared = {
            **self.spared_for_restless(cluster),
            **self.gates.held_groups(self.snapshot),
        }
        domains = configured.domains(self.parts.ha, self.snapshot)
        options = configured.options(self._settings, spared, self.gates.frozen_hosts(self.snapshot), domains)
        known = self.snapshot.hosts_of_cluster.get(cluster, ())
        way = self.ways_home.get(cluster)
        here = [host.id for host in known if host.id in self.emptied]
        return PlanQuestion(
            cluster=cluster,
            frozen={
                **self.frozen(plan),
                **self.projection.moving,
                **({} if way is None else way.given_up),
            },
            left_out=self.backoff.left_out_of(cluster),
            spared=spared,
            options=replace(options, constraints=tuple(leaving(self.projection.snapshot, here))),
            strategy=configured.strategy_name(self._settings),
            deadline=configured.seconds(self._settings),
            simulate=simulate,
            seed=seed,
            restless=bool(self.restless_in(cluster)),
            home=None if way is None else way.moved,
        )
