"""The hard VM-to-host rule: hosts that a VM is restricted to, and hosts that it is kept off."""

from __future__ import annotations

from collections.abc import Iterator

from ovirt_placement.model import AffinityGroup, Snapshot
from ovirt_placement.rules.affinity.host_groups import configured, hard_host_groups_of, listed_hosts
from ovirt_placement.rules.verdict import Kind, Reason, Request, Verdict


def filter_hosts(snapshot: Snapshot, request: Request) -> tuple[Verdict, ...]:
    """Judge each candidate host, in order, by every hard host group of every requested VM.

    All groups apply, so positive ones intersect; the host that a VM runs on has no exemption.
    """
    applying = [(vm, group) for vm in request.vms for group in hard_host_groups_of(snapshot).get(vm, ())]
    notes = tuple(
        Reason(Kind.GROUP_WITHOUT_HOSTS, group.id, vm)
        for vm, group in applying
        if group.hosts_rule.positive and not configured(snapshot, group)
    )
    restrictions = [
        _restriction(snapshot, vm, group) for vm, group in applying if configured(snapshot, group)
    ]

    def vetoes(host: str) -> Iterator[Reason]:
        for listed, must_be_listed, reason in restrictions:
            if (host in listed) is not must_be_listed:
                yield reason

    def judge(host: str) -> Verdict:
        against = tuple(vetoes(host))
        return Verdict(host, accepted=not against, reasons=(*against, *notes))

    return tuple(judge(host) for host in request.candidate_hosts)


def _restriction(snapshot: Snapshot, vm: str, group: AffinityGroup) -> tuple[frozenset[str], bool, Reason]:
    """The hosts listed, whether a host must be among them, and what is said of one that fails."""
    positive = group.hosts_rule.positive
    kind = Kind.HOST_NOT_LISTED if positive else Kind.HOST_FORBIDDEN
    return listed_hosts(snapshot, group), positive, Reason(kind, group.id, vm)
