"""Closed outside of the windows of a cluster, where it has any, and within a blackout of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from math import inf
from typing import Final

from ovirt_enforcer.gates.gate import Facts, Gate
from ovirt_enforcer.gates.host_action import HostAction
from ovirt_enforcer.gates.naming import named
from ovirt_enforcer.windows import Window
from ovirt_placement.model import Cluster
from ovirt_placement.planning.plan import Step
from ovirt_placement.store.intents import IntentKind

#: What ends a maintenance.
_AT_ANY_TIME: Final = (IntentKind.ACTIVATE_HOST, IntentKind.START_VM)


class TimeWindowsGate(Gate):
    name = "windows"

    def why_closed(self, facts: Facts, cluster: str, step: Step) -> str | None:
        return self._why(facts, cluster)

    def why_action_closed(self, facts: Facts, cluster: str, action: HostAction) -> str | None:
        """A host that is out of service is brought back at any time."""
        return None if action.kind in _AT_ANY_TIME else self._why(facts, cluster)

    def _why(self, facts: Facts, cluster: str) -> str | None:
        here = facts.snapshot.cluster_by_id[cluster]
        for blackout in _of(here, facts.settings.blackouts):
            if blackout.contains(facts.now):
                return f"it is within the blackout {_text(blackout)}"
        opening = _opening(facts, here)
        if opening is None:
            return None
        return f"it is outside of the windows; the next one opens at {opening.isoformat(' ', 'minutes')}"

    def seconds_left(self, facts: Facts, cluster: str) -> float:
        opening = _opening(facts, facts.snapshot.cluster_by_id[cluster])
        return inf if opening is None else opening.timestamp() - facts.now.timestamp()


def _opening(facts: Facts, cluster: Cluster) -> datetime | None:
    """When the next window of a cluster opens; None if one is open, or there is none."""
    windows = tuple(_of(cluster, facts.settings.windows))
    if not windows or any(window.contains(facts.now) for window in windows):
        return None
    return min((window.next_start(facts.now) for window in windows), key=lambda at: at.timestamp())


def _of(cluster: Cluster, windows: Sequence[Window]) -> Iterator[Window]:
    return (each for each in windows if not each.clusters or named(each.clusters, cluster.id, cluster.name))


def _text(window: Window) -> str:
    return f'"{window.start}" for {window.hours:g} h ({window.time_zone})'
