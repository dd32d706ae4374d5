"""Closed while somebody had migrations paused, in the cluster or in all of them."""

from __future__ import annotations

from ovirt_enforcer.gates.gate import Facts, Gate
from ovirt_enforcer.gates.host_action import HostAction
from ovirt_placement.planning.plan import Step
from ovirt_placement.store.pauses import ALL_CLUSTERS


class PauseGate(Gate):
    name = "pause"

    def why_closed(self, facts: Facts, cluster: str, step: Step) -> str | None:
        return self._why(facts, cluster)

    def why_action_closed(self, facts: Facts, cluster: str, action: HostAction) -> str | None:
        return self._why(facts, cluster)

    def _why(self, facts: Facts, cluster: str) -> str | None:
        # What was set while the engine was away may have the cluster's name in place of its id.
        here = (ALL_CLUSTERS, cluster, facts.snapshot.cluster_by_id[cluster].name)
        pauses = (pause for pause in facts.remembered.pauses if pause.cluster in here)
        return next((pause.sentence for pause in pauses), None)
