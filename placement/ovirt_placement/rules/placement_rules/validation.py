"""All that is wrong with a placement rule in a state, but for what it lacks itself."""

from __future__ import annotations

from collections.abc import Iterator

from ovirt_placement.model import Snapshot
from ovirt_placement.model.amounts import counted
from ovirt_placement.rules.placement_rules.in_force import mistakes
from ovirt_placement.rules.placement_rules.members import Resolved
from ovirt_placement.rules.placement_rules.restart_order import why_circular, why_without_effect


def why_impossible(snapshot: Snapshot, found: Resolved) -> Iterator[str]:
    """In a sentence, why a rule cannot be satisfied; nothing where it can, or where it is not in force."""
    if found.cluster is None or not found.rule.enabled or next(mistakes(found.rule), None) is not None:
        return
    hosts = [host.id for host in snapshot.hosts_of_cluster.get(found.cluster, ())]
    domains, members, rule = set(found.domain_of.values()), len(found.vms), found.rule
    most = rule.most or 0
    cannot = f"{counted(members, 'VM')} cannot run with at most {most}"
    if rule.kind == "at_most_per_host" and members > most * len(hosts):
        yield f"{cannot} on each of {counted(len(hosts), 'host')}"
    if rule.kind == "at_most_per_domain":
        places = len({found.domain_of.get(host, host) for host in hosts})
        if members > most * places:
            yield f"{cannot} in each of {counted(places, 'failure domain')}"
    if rule.kind == "minimum_domains" and min(members, rule.least or 0) > len(domains):
        yield f"{counted(len(domains), 'failure domain')} exist, and the VMs are to run in {rule.least}"
    if rule.kind == "spread" and len(domains) < (rule.min_domains or 0):
        room = len(domains) * (rule.max_skew or 0)
        if members > room:
            yield (
                f"with {len(domains)} of {rule.min_domains} failure domains only {room} of {members} VMs"
                f" can run: {rule.max_skew} in each"
            )


def rule_problems(snapshot: Snapshot, found: Resolved) -> Iterator[str]:
    """In a sentence each: words that name nothing, numbers that cannot be, orders in a circle."""
    yield from found.problems
    yield from why_impossible(snapshot, found)
    yield from why_circular(snapshot, found.rule.id)
    yield from why_without_effect(snapshot, found)
