"""Closed in mode observe: nothing is migrated before the configuration says so."""

from __future__ import annotations

from collections.abc import Mapping

from ovirt_enforcer.gates.gate import Facts, Gate
from ovirt_enforcer.gates.host_action import HostAction
from ovirt_enforcer.gates.modes import why_as_strict, why_cluster_as_strict, why_group_as_strict
from ovirt_enforcer.gates.naming import group_ids
from ovirt_enforcer.settings import Mode
from ovirt_placement.planning.plan import Step

_OBSERVES = 'ovirt-enforcer is in observe mode: nothing is migrated; set mode = "enforce" in [enforcer]'


class ModeGate(Gate):
    name = "mode"

    def why_closed(self, facts: Facts, cluster: str, step: Step) -> str | None:
        if facts.settings.mode is Mode.OBSERVE:
            return _OBSERVES
        return why_as_strict(facts, cluster, step, Mode.OBSERVE)

    def why_action_closed(self, facts: Facts, cluster: str, action: HostAction) -> str | None:
        if facts.settings.mode is Mode.OBSERVE:
            return _OBSERVES
        return why_cluster_as_strict(facts, cluster, Mode.OBSERVE)

    def held_groups(self, facts: Facts) -> Mapping[str, str]:
        """Groups that are only observed while others of their cluster are repaired.

        Where all of a cluster is observed, its plans show what would be done.
        """
        return {
            group: reason
            for group in (group_ids(facts.snapshot) if facts.settings.mode is not Mode.OBSERVE else ())
            if (reason := why_group_as_strict(facts, group, Mode.OBSERVE)) is not None
        }
