"""The hard VM-to-host rule: hosts that a VM is restricted to or kept off, and hosts that are emptied."""

from __future__ import annotations

from functools import partial

from ovirt_placement.model import AffinityGroup, Snapshot
from ovirt_placement.rules.affinity.groups import asked_by_groups
from ovirt_placement.rules.affinity.host_groups import (
    Restriction,
    configured,
    hard_host_groups_of,
    listed_hosts,
    on_and_off_hosts,
    refusals,
)
from ovirt_placement.rules.elements.rule import Dependence, Rule, UnitKind
from ovirt_placement.rules.elements.verdict import Reason, ReasonKind, Request, Verdict

HOST_NOT_LISTED = ReasonKind("host_not_listed", "VM {vm} may only run on the hosts of {group}", veto=True)
HOST_FORBIDDEN = ReasonKind("host_forbidden", "VM {vm} must not run on the hosts of {group}", veto=True)
#: Marked in our store by a maintenance run; the engine, which still shows it as up, knows nothing of it.
HOST_DRAINING = ReasonKind("host_draining", "the host is being emptied for maintenance", veto=True)
#: It is treated as not configured.
GROUP_WITHOUT_HOSTS = ReasonKind(
    "group_without_hosts", "{group} restricts VM {vm} to hosts but lists none: not counted"
)


def filter_hosts(snapshot: Snapshot, request: Request) -> tuple[Verdict, ...]:
    """Judge each candidate host, in order, by every hard host group of every requested VM.

    All groups apply, so positive ones intersect; the host that a VM runs on has no exemption. A host that is
    being emptied takes nobody.
    """
    applying = [(vm, group) for vm in request.vms for group in hard_host_groups_of(snapshot).get(vm, ())]
    notes = tuple(
        Reason(GROUP_WITHOUT_HOSTS, group.id, vm)
        for vm, group in applying
        if group.hosts_rule.positive and not configured(snapshot, group)
    )
    restrictions = [
        _restriction(snapshot, vm, group) for vm, group in applying if configured(snapshot, group)
    ]
    refused = refusals(request.candidate_hosts, restrictions)

    def judge(host: str) -> Verdict:
        against = refused.get(host, ())
        if host in snapshot.draining_hosts:
            against = (Reason(HOST_DRAINING, host=host), *against)
        return Verdict(host, accepted=not against, reasons=(*against, *notes))

    return tuple(judge(host) for host in request.candidate_hosts)


def _restriction(snapshot: Snapshot, vm: str, group: AffinityGroup) -> Restriction:
    positive = group.hosts_rule.positive
    kind = HOST_NOT_LISTED if positive else HOST_FORBIDDEN
    return listed_hosts(snapshot, group), positive, Reason(kind, group.id, vm)


def _asks(snapshot: Snapshot, group: AffinityGroup) -> bool:
    return group.hosts_rule.hard and bool(listed_hosts(snapshot, group))


def _groups(snapshot: Snapshot, vm: str) -> tuple[str, ...]:
    return tuple(group.id for group in hard_host_groups_of(snapshot).get(vm, ()))


RULE = Rule(
    name="HostAffinityFilter",
    kind=UnitKind.FILTER,
    twins=("VmToHostsAffinityGroups",),
    asked_by=asked_by_groups("hard", _asks),
    filter=filter_hosts,
    depends_on=Dependence(fixed=True, alike=_groups),
    constraints=partial(on_and_off_hosts, hard=True),
)
