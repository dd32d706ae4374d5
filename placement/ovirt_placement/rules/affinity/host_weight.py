"""The weight of VM-to-host affinity: which host violates the least important soft host rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial

from ovirt_placement.model import AffinityGroup, Snapshot
from ovirt_placement.rules.affinity.groups import GROUP_VIOLATED_HERE, asked_by_groups, groups_of, worst_first
from ovirt_placement.rules.affinity.host_groups import listed_hosts, on_and_off_hosts
from ovirt_placement.rules.elements.ranks import competition_ranks, ranked
from ovirt_placement.rules.elements.rule import Rule, UnitKind
from ovirt_placement.rules.elements.verdict import Reason, Request, Weight


def rank_hosts(snapshot: Snapshot, request: Request) -> tuple[Weight, ...]:
    """Rank each candidate host by the soft host rules of the requested VMs.

    One VM compares the priorities of the rules violated on each host from the highest down, as VM
    affinity does. Several VMs add up the number of hosts that are better for each, as the engine
    does. A rule that lists no host is violated everywhere and so decides nothing.
    """
    sums: Counter[str] = Counter()
    reasons: dict[str, tuple[Reason, ...]] = dict.fromkeys(request.candidate_hosts, ())
    for vm in request.vms:
        rules = [group for group in groups_of(snapshot).get(vm, ()) if group.hosts_rule.soft]
        if rules:
            violated = {host: tuple(_violated(snapshot, rules, host)) for host in request.candidate_hosts}
            sums.update(competition_ranks({host: worst_first(groups) for host, groups in violated.items()}))
            for host, groups in violated.items():
                reasons[host] += tuple(
                    Reason(GROUP_VIOLATED_HERE, group.id, number=group.priority) for group in groups
                )
    return ranked(snapshot, request.candidate_hosts, sums, reasons, unburdened=0)


def _violated(snapshot: Snapshot, rules: list[AffinityGroup], host: str) -> Iterator[AffinityGroup]:
    for group in rules:
        if (host in listed_hosts(snapshot, group)) is not group.hosts_rule.positive:
            yield group


def asks(snapshot: Snapshot, group: AffinityGroup) -> bool:
    """Whether an affinity group asks for this weight."""
    return group.hosts_rule.soft and bool(listed_hosts(snapshot, group))


RULE = Rule(
    name="HostAffinityWeight",
    kind=UnitKind.WEIGHT,
    twins=("VmToHostsAffinityGroups",),
    asked_by=asked_by_groups("soft", asks),
    weight=rank_hosts,
    constraints=partial(on_and_off_hosts, hard=False),
)
