"""The engine's filter CPU: no VM runs on a host that has fewer cores than the VM has CPUs, however idle.

Of VMs that are asked about together the largest counts, not their sum. CPUs that other VMs are pinned to
alone are not part of the state, and are not deducted.
"""

from __future__ import annotations

from ovirt_placement.model import Cluster, Host, Snapshot
from ovirt_placement.rules.reasons import Reason, ReasonKind
from ovirt_placement.rules.rule import Rule, UnitKind
from ovirt_placement.rules.verdict import Request, Verdict

TOO_FEW_CORES = ReasonKind("too_few_cores", "has {number:g} cores, fewer than VM {vm} has CPUs", veto=True)


def cores_of(host: Host, cluster: Cluster) -> int:
    """What counts as a core is the cluster's choice: its threads, if they are known, or its cores."""
    return (host.threads or host.cores) if cluster.count_threads_as_cores else host.cores


def filter_hosts(snapshot: Snapshot, request: Request) -> tuple[Verdict, ...]:
    """Refuse hosts with fewer cores than any of the requested VMs has CPUs."""
    vms = [snapshot.vm_by_id[vm] for vm in request.vms if vm in snapshot.vm_by_id]
    largest = max(vms, key=lambda vm: vm.vcpus, default=None)

    def reasons(host_id: str) -> tuple[Reason, ...]:
        host = snapshot.host_by_id.get(host_id)
        if host is None or largest is None:
            return ()
        cores = cores_of(host, snapshot.cluster_by_id[host.cluster])
        if largest.vcpus <= cores:
            return ()
        return (Reason(TOO_FEW_CORES, vm=largest.id, host=host_id, number=cores),)

    return tuple(Verdict.of(host, reasons(host)) for host in request.candidate_hosts)


def _cpus(snapshot: Snapshot, vm: str) -> int | None:
    return snapshot.vm_by_id[vm].vcpus if vm in snapshot.vm_by_id else None


RULE = Rule(name="CPU", kind=UnitKind.FILTER, ours=False, fixed=True, alike=_cpus, filter=filter_hosts)
