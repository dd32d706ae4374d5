"""One look at the engine: a reading of it, with what the store remembers, for all decisions of a moment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from ovirt_enforcer import configured
from ovirt_enforcer.gates.admission import Gates
from ovirt_enforcer.migrating import circles, refusals
from ovirt_enforcer.migrating.circles import Undone
from ovirt_enforcer.migrating.projection import Projection, projected
from ovirt_enforcer.service.planners import Question
from ovirt_enforcer.settings import EnforcerSettings
from ovirt_placement.model import Snapshot
from ovirt_placement.planning.plan import Plan
from ovirt_placement.store.intents import Intent

#: How far back the history must go for all that is asked of it here.
REACH_SECONDS = max(refusals.REACH_SECONDS, circles.REACH_SECONDS)


@dataclass(frozen=True)
class Look:
    """What is known at one moment; the gates were made before the snapshot was read."""

    settings: EnforcerSettings
    snapshot: Snapshot
    gates: Gates
    #: Migrations whose end is not known, and those that have ended, the oldest first.
    open_intents: Sequence[Intent]
    history: Sequence[Intent]
    #: Of the lease, from before all of this was read.
    epoch: int
    #: When that began and was done, by the daemon's clock.
    began: float
    read: float

    @cached_property
    def projection(self) -> Projection:
        """The cluster as it will be once what is under way has ended."""
        return projected(self.snapshot, self.open_intents)

    @cached_property
    def undone(self) -> dict[str, Undone]:
        """VMs that somebody else moves away from where we move them."""
        return circles.undone(self.snapshot, self.history, self.settings.circle_seconds)

    @cached_property
    def left_out(self) -> dict[tuple[str, str], str]:
        """Hosts that VMs are not to be sent to, with the reason, by VM and host id."""
        return {
            **circles.left_behind(self.snapshot, self.history, self.settings.circle_seconds),
            **refusals.left_out(self.snapshot, self.history, self.settings.refusal_seconds),
        }

    def held(self, plan: Plan | None) -> dict[str, str]:
        """VMs that are to be left alone, with the reason; `plan` is the one under way, if any."""
        return {
            **{vm: undone.reason(self.snapshot) for vm, undone in self.undone.items()},
            **refusals.waiting(self.snapshot, self.history, self.settings.refusal_seconds),
            **self.gates.held(self.snapshot, plan),
        }

    def question(self, cluster: str, plan: Plan | None, *, rehearse: bool) -> Question:
        """What a planner is to be asked for a cluster."""
        return Question(
            cluster=cluster,
            held={**self.held(plan), **self.projection.moving},
            left_out=frozenset(
                (vm, host)
                for vm, host in self.left_out
                if vm in self.snapshot.vm_by_id and self.snapshot.vm_by_id[vm].cluster == cluster
            ),
            wishes=configured.wishes(
                self.settings, self.gates.held_groups(self.snapshot), self.gates.held_hosts(self.snapshot)
            ),
            strategy=configured.strategy_name(self.settings),
            deadline=configured.seconds(self.settings),
            rehearse=rehearse,
        )
