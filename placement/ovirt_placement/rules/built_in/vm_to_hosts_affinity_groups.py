"""The engine's own filter VmToHostsAffinityGroups: a positive group without hosts shuts out every host.

It stands next to our `HostAffinityFilter`, for which such a group is not configured. What is planned must
pass this filter as well as ours.
"""

from __future__ import annotations

from ovirt_placement.model import Snapshot
from ovirt_placement.rules.affinity.host_groups import hard_host_groups_of, legacy_groups
from ovirt_placement.rules.reasons import Reason, ReasonKind
from ovirt_placement.rules.rule import Rule, UnitKind
from ovirt_placement.rules.verdict import Request, Verdict

ENGINE_KEEPS_OFF = ReasonKind(
    "engine_keeps_off", "the engine does not allow VM {vm} on this host by the hosts of {group}", veto=True
)
#: Every host is kept from it.
ENGINE_MISSES_HOSTS = ReasonKind(
    "engine_misses_hosts",
    "the engine does not allow VM {vm} on this host: {group} ties it to hosts and lists none",
    veto=True,
)


def filter_hosts(snapshot: Snapshot, request: Request) -> tuple[Verdict, ...]:
    """Judge each candidate host by every hard host group of every requested VM, and by legacy labels."""
    restrictions = [
        (
            frozenset(snapshot.group_hosts[group.id]),
            group.hosts_rule.positive,
            Reason(ENGINE_KEEPS_OFF if snapshot.group_hosts[group.id] else ENGINE_MISSES_HOSTS, group.id, vm),
        )
        for vm in request.vms
        for group in snapshot.groups_of_vm.get(vm, ())
        if group.hosts_rule.hard
    ]
    restrictions += [
        (frozenset(label.hosts), True, Reason(ENGINE_KEEPS_OFF, label.id, vm))
        for label in legacy_groups(snapshot)
        for vm in request.vms
        if vm in label.vms
    ]

    def reasons(host: str) -> tuple[Reason, ...]:
        return tuple(reason for listed, positive, reason in restrictions if (host in listed) is not positive)

    return tuple(Verdict.of(host, reasons(host)) for host in request.candidate_hosts)


def _groups(snapshot: Snapshot, vm: str) -> tuple[str, ...]:
    """Groups of other clusters are among the engine's, legacy labels among ours."""
    engines = (group.id for group in snapshot.groups_of_vm.get(vm, ()) if group.hosts_rule.hard)
    return (*engines, *(group.id for group in hard_host_groups_of(snapshot).get(vm, ())))


RULE = Rule(
    name="VmToHostsAffinityGroups",
    kind=UnitKind.FILTER,
    ours=False,
    fixed=True,
    alike=_groups,
    filter=filter_hosts,
)
