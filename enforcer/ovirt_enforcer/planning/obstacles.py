"""Why a broken group stays broken: what stands in the way of each VM on each host, in sentences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ovirt_enforcer.planning.legality import vetoes, why_immovable
from ovirt_enforcer.planning.plan import Remaining
from ovirt_enforcer.planning.posed import Problem
from ovirt_placement.answers.names import host_name, vm_name
from ovirt_placement.answers.sentences import sentence
from ovirt_placement.model import Host, Snapshot
from ovirt_placement.rules.built_in import memory
from ovirt_placement.rules.catalogue import ENGINES_OWN
from ovirt_placement.rules.violations import Violation


def remaining(
    snapshot: Snapshot, violation: Violation, problem: Problem, held: Mapping[str, str], *, proven: bool
) -> Remaining:
    """A violation that the plan leaves, with what stands in the way of mending it.

    `snapshot` and `problem` are those after the plan; `proven` says whether all other plans were ruled out.
    """
    vms = tuple(sorted(location.vm for location in violation.locations))
    stuck = {vm: why for vm in vms if (why := _why_stuck(snapshot, vm, held)) is not None}
    free = tuple(vm for vm in vms if vm not in stuck)
    if not violation.constraint.positive:
        free = tuple(vm for vm in free if vm in violation.offenders)
        stuck = {vm: why for vm, why in stuck.items() if vm in violation.offenders}
    because = [
        _in_principle(violation, problem, snapshot, proven=proven),
        *(f"{vm_name(vm, snapshot)} stays where it is: {why}" for vm, why in stuck.items()),
        *_merged(snapshot, _refusals(snapshot, violation, free)),
    ]
    if violation.constraint.positive and not stuck:
        because.extend(_merged(snapshot, _closure_refusals(snapshot, violation, vms)))
    constraint = violation.constraint
    return Remaining(
        groups=violation.groups,
        family=constraint.family,
        asks=constraint.asks,
        hard=constraint.hard,
        vms=vms,
        because=tuple(because),
    )


def _in_principle(violation: Violation, problem: Problem, snapshot: Snapshot, *, proven: bool) -> str:
    """What can be said without looking at single VMs."""
    members = {location.vm for location in violation.locations}
    for group in problem.groups:
        if group.ids != violation.groups:
            continue
        if group.gathers and not problem.gathering_hosts[group]:
            return "no host may hold all of its running VMs"
        if not group.gathers and problem.least_surplus[group]:
            hosts = len(members) - problem.least_surplus[group]
            return f"its {len(members)} running VMs need a host each, and only {hosts} can have one"
    others, also = (
        (problem.rivals, "apart") if violation.constraint.positive else (problem.all_peers, "together")
    )
    for vm in sorted(members):
        for other in sorted(others[vm] & members):
            return f"{vm_name(vm, snapshot)} and {vm_name(other, snapshot)} must also run {also}"
    if proven:
        return "no sequence of legal migrations mends it"
    return "no sequence of legal migrations that mends it was found; not all could be tried"


def _why_stuck(snapshot: Snapshot, vm: str, held: Mapping[str, str]) -> str | None:
    return held.get(vm) or why_immovable(snapshot, snapshot.vm_by_id[vm])


Refusal = tuple[str, str, str]
"""Who, to which host, and why not."""


def _refusals(snapshot: Snapshot, violation: Violation, vms: Iterable[str]) -> Iterator[Refusal]:
    """Why each VM may not go alone: of a positive group, to the hosts of its peers; else to any host."""
    peers_on = {location.host for location in violation.locations}
    for vm in vms:
        known = snapshot.vm_by_id[vm]
        for host in snapshot.hosts_of_cluster.get(known.cluster, ()):
            if host.id != known.host and (host.id in peers_on or not violation.constraint.positive):
                for why in _why_not(snapshot, (vm,), host):
                    yield vm_name(vm, snapshot), host.id, why


def _closure_refusals(snapshot: Snapshot, violation: Violation, vms: tuple[str, ...]) -> Iterator[Refusal]:
    """Why a whole positive group may not go to a host that has none of it."""
    peers_on = {location.host for location in violation.locations}
    for host in snapshot.hosts_of_cluster.get(snapshot.vm_by_id[vms[0]].cluster, ()):
        if host.id not in peers_on:
            for why in _why_not(snapshot, vms, host):
                yield "all together", host.id, why


def _why_not(snapshot: Snapshot, vms: tuple[str, ...], host: Host) -> Iterator[str]:
    if not host.up:
        yield f"the host is {host.status}"
        return
    found = list(vetoes(snapshot, host.cluster, vms, host.id))
    ours = [(rule, reason) for rule, reason in found if rule not in ENGINES_OWN]
    for rule, reason in ours or found:
        if rule is not memory.RULE:
            yield sentence(reason, snapshot)
    if any(rule is memory.RULE for rule, _ in found):
        memory_mb = sum(snapshot.vm_by_id[vm].memory_mb for vm in vms)
        yield f"{memory_mb} MiB needed, {host.free_mb} MiB free"


def _merged(snapshot: Snapshot, refusals: Iterable[Refusal]) -> Iterator[str]:
    """One sentence for all hosts that refuse the same VM for the same reason."""
    hosts: dict[tuple[str, str], list[str]] = {}
    for who, host, why in refusals:
        hosts.setdefault((who, why), []).append(host)
    for (who, why), refusing in hosts.items():
        yield f"{who} to {_names(snapshot, refusing)}: {why}"


def _names(snapshot: Snapshot, hosts: Iterable[str]) -> str:
    return ", ".join(sorted(host_name(host, snapshot) for host in hosts))
