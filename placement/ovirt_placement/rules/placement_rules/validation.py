"""All that is wrong with a placement rule in a state, but for what it lacks itself."""

from __future__ import annotations

from collections.abc import Iterator

from ovirt_placement.model import Snapshot
from ovirt_placement.rules.placement_rules.in_force import KINDS, mistakes
from ovirt_placement.rules.placement_rules.members import Resolved
from ovirt_placement.rules.placement_rules.restart_order import why_circular, why_without_effect


def why_impossible(snapshot: Snapshot, found: Resolved) -> Iterator[str]:
    """In a sentence, why a rule cannot be satisfied; nothing where it can, or where it is not in force."""
    if found.cluster is None or not found.rule.enabled or next(mistakes(found.rule), None) is not None:
        return
    kind = KINDS.get(found.rule.kind)
    if kind is not None:
        hosts = frozenset(host.id for host in snapshot.hosts_of_cluster.get(found.cluster, ()))
        yield from kind.impossible(found, hosts)


def rule_problems(snapshot: Snapshot, found: Resolved) -> Iterator[str]:
    """In a sentence each: words that name nothing, numbers that cannot be, orders in a circle."""
    yield from found.problems
    yield from why_impossible(snapshot, found)
    yield from why_circular(snapshot, found.rule.id)
    yield from why_without_effect(snapshot, found)
