"""Reports what lasts only when it begins and when it ends: rules, the breaker, an engine that is away.

What it knows is lost with the process: a rule that is violated still is then reported once more.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from ovirt_enforcer.gates.limits import BreakerGate
from ovirt_enforcer.notifications.kinds import NoticeKind
from ovirt_enforcer.notifications.notice import Notice
from ovirt_enforcer.notifications.notifications import Notifications
from ovirt_enforcer.service.health import engine_is_away
from ovirt_placement.model import Snapshot
from ovirt_placement.model.names import group_name
from ovirt_placement.rules.violations import Violation
from ovirt_service.saying import Said

#: What lasts is reported again after a day.
_QUIET_SECONDS: Final = 24 * 3600.0
#: Of rules that change together this many are named.
_MOST_RULES: Final = 5
#: One cycle that fails is no news.
_FAILURES: Final = 2


class News:
    """What was reported last, so that the same is not reported again."""

    def __init__(self, notifications: Notifications) -> None:
        self._notifications = notifications
        self._said = Said(_QUIET_SECONDS)
        #: The rules that are violated, by cluster: their groups, with a name for people.
        self._violated: dict[str, dict[tuple[str, ...], str]] = {}
        self._failures = 0

    def violated(self, snapshot: Snapshot, cluster: str, violations: Iterable[Violation]) -> None:
        """Report the hard rules that are violated now and were not, and the other way round."""
        before, name = self._violated.get(cluster, {}), snapshot.cluster_by_id[cluster].name
        now = self._violated[cluster] = {
            one.groups: " and ".join(group_name(group, snapshot) for group in one.groups)
            for one in violations
            if one.hard
        }
        fresh = [rule for groups, rule in now.items() if self._said.is_news((cluster, groups))]
        gone = [groups for groups in before if groups not in now]
        for groups in gone:
            self._said.is_over((cluster, groups))
        self._report_rules(NoticeKind.RULE_VIOLATED, cluster, name, fresh)
        self._report_rules(NoticeKind.RULE_REPAIRED, cluster, name, [before[groups] for groups in gone])

    def held(self, cluster: str, name: str, reasons: Iterable[tuple[str, str]]) -> None:
        """Report a breaker that has opened; `reasons` are gates with their words."""
        for gate, reason in reasons:
            if gate == BreakerGate.name and self._said.is_news((cluster, gate)):
                self._notifications.report(
                    NoticeKind.BREAKER_OPEN, cluster_id=cluster, cluster=name, reason=reason
                )

    def began(self, cluster: str) -> None:
        """Take note that the breaker of a cluster has let something through."""
        self._said.is_over((cluster, BreakerGate.name))

    def failed(self, error: Exception) -> None:
        """Report an engine that is away, once cycles in a row have failed since it is."""
        if engine_is_away(error):
            self._failures += 1
            if self._failures >= _FAILURES and self._said.is_news("engine"):
                self._notifications.report(NoticeKind.ENGINE_AWAY, reason=str(error))

    def read(self) -> None:
        """Report that the engine answers again, if it was reported that it did not."""
        self._failures = 0
        if self._said.is_over("engine"):
            self._notifications.report(NoticeKind.ENGINE_BACK)

    def _report_rules(self, kind: NoticeKind, cluster: str, name: str, rules: Sequence[str]) -> None:
        """Report rules that change together in one message, which carries one for each."""
        if not rules:
            return
        each = tuple(Notice(kind, {"cluster": name, "rule": rule}, cluster=cluster) for rule in rules)
        if len(each) == 1:
            self._notifications.send(each[0])
            return
        more = f" and {len(rules) - _MOST_RULES} more" if len(rules) > _MOST_RULES else ""
        named = f"each of {len(rules)} rules ({', '.join(rules[:_MOST_RULES])}{more})"
        facts = {"cluster": name, "rule": named}
        self._notifications.send(Notice(kind, facts, cluster=cluster, carried=each))
