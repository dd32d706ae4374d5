"""Plans that people have asked the page for: made apart, compared, and kept for who has one carried out."""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import msgspec

from ovirt_enforcer.engine_state import read_engine_state, way_back
from ovirt_enforcer.orders import domains_of, in_order_of_plan
from ovirt_enforcer.planners import planned_in_process
from ovirt_enforcer.plans import (
    RoomFound,
    maintenance_options,
    maintenance_planned,
    plan_options,
    planning_seconds,
    room_for,
)
from ovirt_enforcer.processes import in_process, preload
from ovirt_enforcer.settings import EnforcerSettings
from ovirt_placement import inventory
from ovirt_placement.answers.plans.maintenance import ClusterMaintenance
from ovirt_placement.answers.plans.plan import plan_record
from ovirt_placement.answers.plans.reading import Document
from ovirt_placement.answers.preview import Change, preview
from ovirt_placement.answers.what_if import WhatIfDocument
from ovirt_placement.config import Config
from ovirt_placement.model import Cluster, Snapshot, Vm
from ovirt_placement.model.maintenance import Return
from ovirt_placement.store.enforcer.history import PlanRecord
from ovirt_placement_web.bounds import Latest
from ovirt_placement_web.settings import ENGINE_SECONDS

#: This many are kept, the latest.
_MOST = 100
#: How long a person waits for a plan at most.
_MOST_SECONDS = 30.0


class MadePlan(NamedTuple):
    """A plan that somebody has looked at."""

    document: Document
    #: The plan that it takes back, if any.
    undoes: str | None = None
    #: VMs that stay where that plan took them, each as (id, name, why).
    kept: tuple[tuple[str, str, str], ...] = ()


class MadePlans:
    """Makes them, and knows those that were made last."""

    def __init__(self, config: Config) -> None:
        self._config = config
        preload(__name__)  # the first plan of this process waits for less
        self._lock = threading.Lock()
        self._known = Latest[str, MadePlan](_MOST)

    def plan(self, cluster: Cluster, staying: Mapping[str, str]) -> MadePlan:
        """What would be done now if these VMs stayed where they are, with the reasons. Raises `UserError`."""
        settings = self._config.section("enforcer", EnforcerSettings)
        seconds = min(planning_seconds(settings), _MOST_SECONDS)
        found = read_engine_state(self._config, ENGINE_SECONDS)
        made = planned_in_process(found, cluster.id, seconds, staying)
        return self._keep_plan(
            MadePlan(msgspec.to_builtins(plan_record(made, found.snapshot, found.not_now(made))))
        )

    def undo(self, record: PlanRecord) -> MadePlan:
        """What would take back what a plan has done. Raises `UserError`."""
        snapshot = inventory.snapshot(config=self._config, deadline=ENGINE_SECONDS)
        found = way_back(self._config, snapshot, record)
        kept = tuple((one.id, one.name, one.because) for one in found.kept)
        return self._keep_plan(MadePlan(msgspec.to_builtins(found.clusters[0]), record.id, kept))

    def room(self, snapshot: Snapshot, vm: Vm) -> RoomFound:
        """Which migrations let a VM start that no host takes; kept, to be carried out. Raises `UserError`."""
        found = in_process(room_for, snapshot, vm, seconds=_MOST_SECONDS)
        if found.plan.steps:
            self._keep_plan(MadePlan(msgspec.to_builtins(found.plan)))
        return found

    def foreseen(self, snapshot: Snapshot, change: Change) -> WhatIfDocument:
        """What would come of a change, if what is configured is repaired. Raises `UserError`."""
        settings = self._config.section("enforcer", EnforcerSettings)
        repair = plan_options(settings).repair
        return in_process(preview, snapshot, change, repair=repair, seconds=_MOST_SECONDS)

    def maintenance(self, hosts: Sequence[str], stopped: Collection[str], back: Return) -> ClusterMaintenance:
        """What a rolling maintenance of hosts of one cluster would be now. Raises `UserError`."""
        found = read_engine_state(self._config, ENGINE_SECONDS)
        options = maintenance_options(found, hosts, stopped=stopped, back=back)
        return in_process(maintenance_planned, found.snapshot, hosts, options, seconds=_MOST_SECONDS)

    def check_rounds(self, snapshot: Snapshot, hosts: Sequence[str], stopped: Sequence[str]) -> None:
        """Raise `UserError` if some of these hosts cannot become empty."""
        found, domains = [snapshot.host_by_id[host] for host in hosts], domains_of(self._config, snapshot)
        in_process(in_order_of_plan, snapshot, found, stopped, domains, seconds=_MOST_SECONDS)

    def known(self, plan: str) -> MadePlan | None:
        with self._lock:
            return self._known.get(plan)

    def _keep_plan(self, made: MadePlan) -> MadePlan:
        with self._lock:
            self._known[made.document["id"]] = made
        return made
