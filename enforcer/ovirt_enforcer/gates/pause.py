"""Closed while somebody had migrations paused, in the cluster or in all of them."""

from __future__ import annotations

from datetime import UTC, datetime

from ovirt_enforcer.gates.gate import Facts, Gate
from ovirt_placement.planning.plan import Step
from ovirt_placement.store.pauses import ALL_CLUSTERS, Pause


class PauseGate(Gate):
    name = "pause"

    def why_closed(self, facts: Facts, cluster: str, step: Step) -> str | None:
        # What was set while the engine was away may have the cluster's name in place of its id.
        here = (ALL_CLUSTERS, cluster, facts.snapshot.cluster_by_id[cluster].name)
        pauses = (pause for pause in facts.remembered.pauses if pause.cluster in here)
        return next(map(_sentence, pauses), None)


def _sentence(pause: Pause) -> str:
    where = f"cluster {pause.cluster_name}" if pause.cluster else "everything"
    since = datetime.fromtimestamp(pause.set_at, UTC).isoformat(" ", "minutes")
    reason = f" ({pause.reason})" if pause.reason else ""
    return f"{pause.set_by} paused {where} at {since}{reason}"
