"""The mode of a step: the strictest of the engine's, its cluster's and those of the rules that it repairs."""

from __future__ import annotations

from typing import Final

from ovirt_enforcer.gates.gate import Facts
from ovirt_enforcer.gates.naming import plain_group_name, value_of
from ovirt_enforcer.gates.purpose import why_for_nothing
from ovirt_enforcer.settings import Mode
from ovirt_placement.model.names import group_name
from ovirt_placement.planning.plan import Step

#: From the strictest.
_STRICT_FIRST: Final = (Mode.OBSERVE, Mode.APPROVE, Mode.ENFORCE)


def why_as_strict(facts: Facts, cluster: str, step: Step, mode: Mode) -> str | None:
    """What makes a step's mode as strict as this one, or stricter; None if nothing does."""
    strict = why_cluster_as_strict(facts, cluster, mode)
    if strict is not None:
        return strict
    return why_for_nothing(step, facts.plan, lambda group: why_group_as_strict(facts, group, mode))


def why_cluster_as_strict(facts: Facts, cluster: str, mode: Mode) -> str | None:
    """The same of a cluster, whatever is done there."""
    if _as_strict(facts.settings.mode, mode):
        return f"ovirt-enforcer is in {facts.settings.mode} mode"
    name = facts.snapshot.cluster_by_id[cluster].name
    of_cluster = value_of(facts.settings.clusters, cluster, name)
    if of_cluster is not None and _as_strict(of_cluster, mode):
        return f"cluster {name} is in mode {of_cluster}"
    return None


def why_group_as_strict(facts: Facts, group: str, mode: Mode) -> str | None:
    """The same of a group by itself, whatever its cluster's mode."""
    own = value_of(facts.settings.groups, group, plain_group_name(group, facts.snapshot))
    if own is None or not _as_strict(own, mode):
        return None
    return f"{group_name(group, facts.snapshot)} is in mode {own}"


def _as_strict(mode: Mode, other: Mode) -> bool:
    return _STRICT_FIRST.index(mode) <= _STRICT_FIRST.index(other)
