"""Records each decision and what came of it, cycles, settings and what people did, at once and once each."""

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from ovirt_enforcer.gates.gate import refused
from ovirt_enforcer.gates.limits import BREAKER
from ovirt_enforcer.log import Notice, NoticeKind, audit
from ovirt_enforcer.notifications import Notifications
from ovirt_enforcer.service.metrics import EnforcerMetrics, Sampler, engine_is_away
from ovirt_enforcer.watchers.verdict import ReservationVerdict
from ovirt_placement.model import NO_STATE, Snapshot
from ovirt_placement.model.names import counted, group_names, host_name, vm_name
from ovirt_placement.rules.catalogue import find_violations, violated_groups
from ovirt_placement.store.enforcer.history import (
    Document,
    EndedStep,
    HistoryStore,
    RuleAfterwards,
    StepOutcome,
)
from ovirt_placement.store.enforcer.intents import Cause, Intent, IntentState
from ovirt_placement.store.user_actions import UserActionStore
from ovirt_service.repetition import Said

#: What lasts is reported again after a day.
_QUIET_SECONDS: Final = 24 * 3600.0
_MOST_RULES: Final = 5
_FAILURES: Final = 2


@dataclass(eq=False)
class Recorder:
    """What the daemon reports of its work; it is a watcher of its readings, too."""

    store: HistoryStore
    metrics: EnforcerMetrics
    notifications: Notifications = field(default_factory=Notifications)
    #: This process's own, as a candidate for the lease.
    name: str = ""
    #: Without one no trend is kept.
    sampler: Sampler | None = None
    _latest: Snapshot = field(default=NO_STATE, init=False)
    _said: Said = field(default_factory=Said, init=False)
    #: What was reported, and is not reported again. With the process it is lost: what lasts is then reported
    #: once more.
    _reported: Said = field(default_factory=lambda: Said(_QUIET_SECONDS), init=False)
    #: The hard rules that are violated, by cluster: their groups, with the names that they were reported by.
    #: What is renamed meanwhile ends by these: a receiver knows it by nothing else.
    _violated: dict[str, dict[tuple[str, ...], Mapping[str, str]]] = field(default_factory=dict, init=False)
    _failures: int = field(default=0, init=False)
    #: Of each cluster the plan that was made last, with how many of its migrations have not begun.
    _ahead: dict[str, tuple[str, int]] = field(default_factory=dict, init=False)

    def planned(self, plan_id: str, cluster: str, document: Document, epoch: int) -> None:
        self.metrics.plans.labels("yes" if document.get("proven") else "no").inc()
        name = self._cluster_name(cluster)
        steps, remaining = document.get("steps", ()), document.get("remaining", ())
        self._set_ahead(cluster, plan_id, sum(len(step["vms"]) for step in steps))
        if not steps and not remaining:
            return
        self.store.record_plan(plan_id, cluster, document, epoch=epoch)
        sentence = (
            f"{counted(len(steps), 'step')} planned in cluster {name};"
            f" {counted(len(remaining), 'rule')} not repaired"
        )
        if self._said.is_news(cluster, plan_id):
            audit("plan", sentence, plan=plan_id, cluster=cluster, name=name, epoch=epoch, document=document)

    def waits(self, plan_id: str, cluster: str) -> None:
        name = self._cluster_name(cluster)
        self.notifications.report(NoticeKind.PLAN_WAITS, cluster_id=cluster, cluster=name, plan=plan_id)

    def held(self, plan_id: str, cluster: str, reasons: Mapping[int, tuple[str, str]]) -> None:
        """Gates held steps of a plan back: by the numbers of the steps, from 1, which gate and why."""
        for step, (gate, reason) in reasons.items():
            self.metrics.closed.labels(gate).inc()
            if self._said.is_news((plan_id, step), gate):
                audit("held", reason, plan=plan_id, step=step, gate=gate)
            if gate == BREAKER.name and self._reported.is_news((cluster, gate)):
                name = self._cluster_name(cluster)
                self.notifications.report(
                    NoticeKind.BREAKER_OPEN, cluster_id=cluster, cluster=name, reason=reason
                )
        if reasons:
            self.store.record_held(plan_id, reasons)

    def began(self, intents: Iterable[Intent]) -> None:
        for intent in intents:
            audit("begun", f"{self._title(intent)} begins", **self._facts(intent))
            plan, ahead = self._ahead.get(intent.cluster, ("", 0))
            if intent.plan == plan:
                self._set_ahead(intent.cluster, plan, ahead - 1)
            self._reported.is_over((intent.cluster, BREAKER.name))

    def ended(self, intent: Intent) -> None:
        """The end of a migration is known: done, failed, refused by the engine or never asked of it."""
        result = "refused" if refused(intent) else intent.state.value
        if intent.cause is Cause.NEVER_ASKED:
            result = "never_asked"
        self.metrics.ended(intent, result)
        because = f": {intent.reason}" if intent.reason else ""
        seconds = round(max(0.0, intent.updated - intent.created), 3)
        sentence = f"{self._title(intent)} {result.replace('_', ' ')}{because}"
        audit("ended", sentence, result=result, seconds=seconds, **self._facts(intent))
        if intent.state is IntentState.FAILED and result != "never_asked":
            self.notifications.report(
                NoticeKind.MIGRATION_FAILED,
                cluster_id=intent.cluster,
                vm_id=intent.vm,
                cluster=self._cluster_name(intent.cluster),
                vm=vm_name(intent.vm, self._latest),
                host=host_name(intent.target, self._latest),
                reason=intent.reason or "no reason is known",
            )

    def leading(self, epoch: int) -> None:
        """Report that this process leads in an epoch, or with 0 that it does not any more."""
        self.metrics.leader.set(epoch > 0)
        self.metrics.epoch.set(epoch)
        audit("leader", f"leads in epoch {epoch}" if epoch else "leads no more", epoch=epoch)
        if epoch:
            self.notifications.report(NoticeKind.LEADER_CHANGED, leader=self.name, epoch=str(epoch))

    def forget(self) -> None:
        """Show no cluster any more: another process leads, or may have led, and what it reports is not known.

        A rule that is violated then is reported once more, and one that is satisfied as well.
        """
        for cluster, rules in self._violated.items():
            for groups in rules:
                self._reported.is_over((cluster, groups))
        self.metrics.forget()

    def record_violations(self, snapshot: Snapshot, cluster: str) -> None:
        violations = tuple(find_violations(snapshot, cluster))
        name = snapshot.cluster_by_id[cluster].name
        self.metrics.record_violations(name, violations)
        if self.sampler is not None:
            self.sampler.record_violations(cluster, name, violations)
        before = self._violated.get(cluster, {})
        now = self._violated[cluster] = {
            violation.groups: before.get(violation.groups)
            or {"cluster": name, "rule": group_names(violation.groups, snapshot)}
            for violation in violations
            if violation.hard
        }
        fresh = [facts for groups, facts in now.items() if self._reported.is_news((cluster, groups))]
        gone = [groups for groups in before if groups not in now]
        for groups in gone:
            self._reported.is_over((cluster, groups))
        self._report_rules(NoticeKind.RULE_VIOLATED, cluster, name, fresh)
        self._report_rules(NoticeKind.RULE_REPAIRED, cluster, name, [before[groups] for groups in gone])

    def judged(self, verdicts: Collection[ReservationVerdict]) -> None:
        """Report the HA reservations of these clusters, and of no others."""
        self.metrics.judged(verdicts)
        if self.sampler is not None:
            self.sampler.judged(verdicts)

    def observe(self, snapshot: Snapshot) -> None:
        """See what steps that have ended have brought; the reading must have begun after their end."""
        self._latest, self._failures = snapshot, 0
        if self._reported.is_over("engine"):
            self.notifications.report(NoticeKind.ENGINE_BACK)
        ended = self.store.ended_steps()
        violated = {
            cluster: violated_groups(snapshot, cluster) for cluster in {step.cluster for step in ended}
        }
        for step in ended:
            self._record_outcome(step, violated[step.cluster])

    def _record_outcome(self, step: EndedStep, violated: frozenset[str]) -> None:
        repairs = step.document.get("repairs", ())
        rules = tuple(
            RuleAfterwards(rule["id"], rule["name"], rule["id"] not in violated) for rule in repairs
        )
        gain = sum(rule.holds for rule in rules) if step.done else 0
        self.store.record_outcome((one.correlation_id for one in step.migrations), StepOutcome(gain, rules))
        self.metrics.predicted.inc(len(rules))
        self.metrics.achieved.inc(gain)
        states = ", ".join(f"{rule.name} is {'satisfied' if rule.holds else 'violated'}" for rule in rules)
        sentence = f"step {step.step} of plan {step.plan} has ended: {states or 'it was to repair no rule'}"
        audit(
            "outcome",
            sentence,
            plan=step.plan,
            step=step.step,
            predicted=len(rules),
            achieved=gain,
            predicted_seconds=step.document.get("seconds"),
            seconds=round(max(one.seconds for one in step.migrations), 3),
        )

    def failed(self, error: Exception) -> None:
        """Report an engine that is away, once cycles in a row have failed since it is."""
        if engine_is_away(error):
            self._failures += 1
            if self._failures >= _FAILURES and self._reported.is_news("engine"):
                self.notifications.report(NoticeKind.ENGINE_AWAY, reason=str(error))

    def _report_rules(
        self, kind: NoticeKind, cluster: str, name: str, rules: Sequence[Mapping[str, str]]
    ) -> None:
        each = tuple(Notice(kind, facts, cluster=cluster) for facts in rules)
        if len(each) == 1:
            self.notifications.send(each[0])
        elif each:
            more = f" and {len(rules) - _MOST_RULES} more" if len(rules) > _MOST_RULES else ""
            first = ", ".join(facts["rule"] for facts in rules[:_MOST_RULES])
            facts = {"cluster": name, "rule": f"each of {len(rules)} rules ({first}{more})"}
            self.notifications.send(Notice(kind, facts, cluster=cluster, carried=each))

    def _set_ahead(self, cluster: str, plan: str, migrations: int) -> None:
        self._ahead[cluster] = plan, migrations
        self.metrics.planned.labels(self._cluster_name(cluster)).set(migrations)

    def _facts(self, intent: Intent) -> dict[str, Any]:
        return {
            "plan": intent.plan,
            "step": intent.step,
            "correlation_id": intent.correlation_id,
            "cluster": intent.cluster,
            "vm": {"id": intent.vm, "name": vm_name(intent.vm, self._latest)},
            "from": intent.source and {"id": intent.source, "name": host_name(intent.source, self._latest)},
            "to": {"id": intent.target, "name": host_name(intent.target, self._latest)},
        }

    def _title(self, intent: Intent) -> str:
        return f"migration of {vm_name(intent.vm, self._latest)} to {host_name(intent.target, self._latest)}"

    def _cluster_name(self, cluster: str) -> str:
        known = self._latest.cluster_by_id.get(cluster)
        return cluster if known is None else known.name


_log = logging.getLogger(__name__)


def log_user_actions(store: UserActionStore) -> None:
    """Log what people did that is not logged yet; raises `StoreAway` and `LeaseLost`."""
    with store.unlogged() as found:
        for action in found:
            _log.info("%s", action.sentence)
            audit(
                "user_action",
                action.sentence,
                action=action.kind,
                id=action.id,
                state=action.state,
                at=datetime.fromtimestamp(action.created, UTC).isoformat(timespec="milliseconds"),
                login=action.login,
                machine=action.machine,
                engine_user=action.engine_user,
                cluster=action.cluster and {"id": action.cluster, "name": action.cluster_name},
                plan=action.plan,
                subject=action.subject,
                details=action.details,
                error=action.error,
            )
