"""The parts of a store for one engine: all that writes and reads, called by those who ask whose a row is."""

from __future__ import annotations

from ovirt_placement.model import PlacementKey, PlacementRule, StickyCopy
from ovirt_placement.store.access import StoreAccess
from ovirt_placement.store.approvals import ApprovalStore, ApprovedMove
from ovirt_placement.store.default_keys import DefaultKey, DefaultKeyChange, DefaultKeyStore
from ovirt_placement.store.enforcer_records import (
    Cycle,
    CycleStore,
    EnforcerSettingsStore,
    HaAnnouncementStore,
    OpenBreaker,
    ViolatedRuleStore,
)
from ovirt_placement.store.history import HistoryStore, StepOutcome
from ovirt_placement.store.intents import Store
from ovirt_placement.store.keys import KeyChange, KeyStore, Run
from ovirt_placement.store.leases import LeaseStore
from ovirt_placement.store.maintenance import HostPhase, MaintenanceRequest, MaintenanceStore, RunState
from ovirt_placement.store.memberships import (
    LostMembership,
    Membership,
    MembershipChange,
    MembershipKind,
    MembershipStore,
    Seen,
)
from ovirt_placement.store.pauses import PauseStore
from ovirt_placement.store.placement_rules import RuleChange, RuleStore
from ovirt_placement.store.samples import SampleStore
from ovirt_placement.store.user_actions import Act, UserActionKind, UserActionStore
from tests.stored import prepared, put_keys

OURS, THEIRS = "ours", "theirs"
SEEN = Seen("v1", "c1", "blue", (Membership(MembershipKind.GROUP, "g1", "near"),))
MOVES = (ApprovedMove(("v1",), ("h1",), "h2"),)
LOST = LostMembership("v1", "web", "c2", "red", MembershipKind.LABEL, "l1", "backend")


class Parts:
    """The parts of a store, for one engine."""

    def __init__(self, url: str, engine: str) -> None:
        self.engine = engine
        self.intents = Store(url, engine=engine, patience_seconds=30)
        self.keys = KeyStore(url, engine=engine, patience_seconds=30)
        self.default_keys = DefaultKeyStore(url, engine=engine, patience_seconds=30)
        self.memberships = MembershipStore(url, engine=engine, patience_seconds=30)
        self.leases = LeaseStore(url, engine=engine, patience_seconds=30)
        self.history = HistoryStore(url, engine=engine, patience_seconds=30)
        self.pauses = PauseStore(url, engine=engine, patience_seconds=30)
        self.approvals = ApprovalStore(url, engine=engine, patience_seconds=30)
        self.violated = ViolatedRuleStore(url, engine=engine, patience_seconds=30)
        self.samples = SampleStore(url, engine=engine, patience_seconds=30)
        self.cycles = CycleStore(url, engine=engine, patience_seconds=30)
        self.settings = EnforcerSettingsStore(url, engine=engine, patience_seconds=30)
        self.rules = RuleStore(url, engine=engine, patience_seconds=30)
        self.actions = UserActionStore(url, engine=engine, patience_seconds=30)
        self.ha = HaAnnouncementStore(url, engine=engine, patience_seconds=30)
        self.maintenance = MaintenanceStore(url, engine=engine, patience_seconds=30)

    def fill(self) -> None:
        """Write something into every table; the ids are those of every other engine."""
        self.prepare("v1", "open")
        self.intents.fail(self.prepare("v1", "ended"), f"{self.engine} refused")
        put_keys(self.keys, [key(1.0)], set_by=self.engine)
        self.keys.begin_runs([Run("v1", 1.0, (("A", 1.0),), (StickyCopy("v1", "SAN", 1.0, 60.0),))])
        self.default_keys.change(
            lambda _: DefaultKeyChange(give=(self.default_key("c1"),)), set_by=self.engine
        )
        self.keys.mark_missing(["v1"])
        self.memberships.change(MembershipChange(seen=(SEEN,), lost=(LOST,)))
        self.leases.take(self.engine, 600.0)
        self.history.record_plan("p1", "c", {"steps": [{"by": self.engine}], "remaining": []})
        self.history.record_held("p1", {1: ("window", self.engine)})
        self.pauses.pause("c1", cluster_name="blue", reason=self.engine, set_by="ann", seconds=None)
        self.pauses.resume("c2", set_by=self.engine)
        for plan in ("p1", "p2"):
            self.approvals.offer("c", plan, MOVES, self.engine)
            self.approvals.approve("p1", set_by=self.engine)
        self.violated.look("c", ["g1"], cycle_seconds=60, enough=3)
        self.announce(1)
        self.actions.begin(Act(kind=UserActionKind.SETUP, login=self.engine))
        self.samples.record_violations("c", self.engine, hard=1, soft=0)
        self.cycles.record(Cycle(epoch=1, error=self.engine, breakers=(OpenBreaker("c", self.engine),)))
        self.settings.record(1, {"audit_log": self.engine})
        self.request_maintenance("r1")
        rule = PlacementRule("r1", "at_most", self.engine, most=1)
        self.rules.change(lambda rules: RuleChange(put=(rule,)), changed_by=self.engine)

    def request_maintenance(self, run: str) -> None:
        request, hosts = MaintenanceRequest(), [("h1", self.engine)]
        self.maintenance.request(run, ("c", "blue"), hosts, request, requested_by=self.engine)

    def default_key(self, cluster: str) -> DefaultKey:
        return DefaultKey(cluster, "#RAM", 40.0, self.engine)

    def announce(self, number: int) -> None:
        self.ha.announce(number=number, cluster="c", kind="ha_alert", facts={"by": self.engine}, settles=True)

    def prepare(self, vm: str, correlation_id: str) -> int:
        return prepared(
            self.intents,
            vm=vm,
            cluster="c",
            source="h1",
            target="h2",
            correlation_id=f"{self.engine} {correlation_id}",
            plan="p1",
            step=1,
        ).id

    def change_everything(self) -> None:
        """Call everything that writes."""
        self.leases.renew(1, 600.0)
        self.leases.release(1)
        self.leases.take("another", 600.0)
        self.history.record_plan("p1", "c", {"steps": [], "remaining": []}, epoch=2)
        self.history.record_held("p1", {1: ("mode", "observe"), 2: ("mode", "observe")})
        self.history.record_outcome(["ours ended", "theirs ended"], StepOutcome(0))
        self.pauses.pause("c1", cluster_name="blue", reason="again", set_by="eve", seconds=5.0)
        self.pauses.resume("c1", set_by="eve")
        self.approvals.approve("p2", set_by="eve")
        self.approvals.offer("c", "p3", MOVES, "again")
        self.approvals.withdraw("c")
        self.violated.look("c", [], cycle_seconds=60, enough=3)
        self.announce(2)
        self.ha.mark_reported(1)
        self.ha.renumber(2, 3)
        (lost,) = self.memberships.lost()
        self.memberships.mark_reported("v1", lost.since)
        self.memberships.change(MembershipChange(regained=(lost,)))
        self.memberships.change(MembershipChange(lost=(lost,), without=("v1",)))
        self.memberships.forget_lost("v1")
        self.memberships.change(MembershipChange(seen=(SEEN,), lost=(LOST,)))
        for intent in self.intents.open_intents():
            self.intents.accept(intent.id)
            self.intents.lose(intent.id, "no answer")
            self.intents.accept(intent.id)
            self.intents.finish(intent.id)
        self.intents.forget(older_than_seconds=-60)
        self.actions.end(self.actions.begin(Act(kind=UserActionKind.SETUP, login="eve")), "no")
        with self.actions.unlogged():
            pass
        self.samples.record_violations("c", "blue", hard=9, soft=9)
        self.cycles.record(Cycle(epoch=2, error=None))
        self.settings.record(2, {"audit_log": "eve"})
        self.maintenance.order("r1", RunState.PAUSED, after=(RunState.RUNNING,), set_by="eve")
        self.maintenance.enter("r1", "h1", HostPhase.DRAINING, draining=True, vms=["v1"])
        self.maintenance.note("r1", "h1", "again")
        self.maintenance.mark_stopped("r1", "h1", ["v1"])
        self.maintenance.end("r1", RunState.STOPPED, "again")
        self.request_maintenance("r2")
        self.rules.change(lambda rules: RuleChange(remove=("r1",)), changed_by="eve")
        put_keys(self.keys, [key(2.0)], set_by="eve")
        changed = DefaultKeyChange(take=(self.default_key("c1"),), give=(self.default_key("c2"),))
        self.default_keys.change(lambda _: changed, set_by="eve")
        taken = DefaultKeyChange(take=(self.default_key("c2"),))
        self.default_keys.change(lambda _: taken, set_by="eve")
        self.keys.change(lambda placement: KeyChange(remove=placement), set_by="eve")
        self.keys.begin_runs([Run("v1", 2.0, (), ())])
        self.keys.end_runs(["v1"])
        self.keys.mark_missing(["v2"])
        self.keys.mark_missing([])
        self.keys.begin_runs([Run("v1", 2.0, (), ())])
        self.keys.forget_vms(["v1", "v2"])

    def everything(self) -> list[object]:
        """Call everything that reads; ages are left out."""
        return [
            [intent.correlation_id for intent in self.intents.open_intents()],
            [intent.correlation_id for intent in self.intents.blocking_intents()],
            [intent.error for intent in self.intents.history(within_seconds=600)],
            [intent.error for intent in self.intents.history(within_seconds=600, vm="v1")],
            self.keys.all_keys(),
            self.keys.runs(),
            self.default_keys.read(),
            self.keys.remembered_vms(),
            self.keys.revision(),
            self.keys.records(),
            self.memberships.seen(),
            self.memberships.lost(),
            getattr(self.leases.read(), "owner", None),
            self.history.plans(since_seconds=600),
            self.history.plans_named("p"),
            self.history.ended_steps(),
            [migration.correlation_id for migration in self.history.unplanned(since_seconds=600)],
            [(run.id, run.requested_by, run.state, run.message) for run in self.maintenance.runs()],
            [(host.name, host.phase) for run in self.maintenance.active() for host in run.hosts],
            self.intents.open_actions(),
            self.intents.actions("h2", within_seconds=600),
            self.pauses.pauses(),
            list(self.pauses.resumed()),
            self.approvals.waiting(),
            [(approval.plan, approval.set_by) for approval in self.approvals.approvals()],
            self.violated.cycles(),
            self.samples.samples(since_seconds=600).samples,
            self.rules.all_rules(),
            getattr(self.cycles.last(), "error", None),
            self.settings.of_leader(),
            [(action.kind, action.login, action.state) for action in self.actions.actions(since_seconds=600)],
        ]

    def close(self) -> None:
        for part in vars(self).values():
            if isinstance(part, StoreAccess):
                part.close()


def key(value: float) -> PlacementKey:
    return PlacementKey(
        level="server", resource="v1", key_class="system", name="GEN", value=value, weight=5.0
    )
