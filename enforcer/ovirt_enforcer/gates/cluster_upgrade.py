"""Closed while somebody else upgrades a cluster: its hosts are emptied, and each move would be in the way."""

from __future__ import annotations

from typing import Final

from ovirt_enforcer.gates.gate import Facts, Gate
from ovirt_enforcer.gates.host_action import HostAction
from ovirt_placement.answers.sentences import upgrade_text
from ovirt_placement.planning.plan import Step
from ovirt_placement.store.intents import IntentKind

#: Bringing back what is out of service is in nobody's way.
_AT_ANY_TIME: Final = (IntentKind.UPGRADE_HOST, IntentKind.ACTIVATE_HOST, IntentKind.START_VM)


class ClusterUpgradeGate(Gate):
    name = "cluster_upgrade"

    def why_closed(self, facts: Facts, cluster: str, step: Step) -> str | None:
        return self._why(facts, cluster)

    def why_action_closed(self, facts: Facts, cluster: str, action: HostAction) -> str | None:
        return None if action.kind in _AT_ANY_TIME else self._why(facts, cluster)

    def _why(self, facts: Facts, cluster: str) -> str | None:
        known = facts.snapshot.cluster_by_id[cluster]
        own = known.upgrade_correlation_id in facts.remembered.own_upgrades
        return upgrade_text(known) if known.upgrade_mode and not own else None
