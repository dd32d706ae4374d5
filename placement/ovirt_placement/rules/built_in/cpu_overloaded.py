"""The engine's filter CPUOverloaded: no VM comes to a host whose CPUs have been too busy for minutes.

The engine remembers since when a host has been busy and does not show it. So a host that is too busy now is
refused here, though the engine may still accept it for as long as the policy says. A host that was measured
and has no CPU statistics is refused at once, as by the engine; of one that nobody measured nothing is said.

Source: CpuOverloadPolicyUnit, HostCpuLoadHelper. VMs on their way add nothing.
"""

from __future__ import annotations

from ovirt_placement.model import Snapshot
from ovirt_placement.model.snapshot import HOST_STATISTICS
from ovirt_placement.rules.cpus import shared_load
from ovirt_placement.rules.parameters import whole_number
from ovirt_placement.rules.reasons import NOT_KNOWN_YET, Reason, ReasonKind, unread
from ovirt_placement.rules.rule import Rule, UnitKind
from ovirt_placement.rules.verdict import Request, Verdict

CPU_OVERLOADED = ReasonKind(
    "cpu_overloaded",
    "its CPU is too loaded: {number:g} % are in use, which the engine refuses once it has lasted",
    veto=True,
)
NO_CPU_STATISTICS = ReasonKind("no_cpu_statistics", "the engine has no statistics of its CPU", veto=True)

#: The parameter for the percent above which a host is overloaded, and HighUtilizationForScheduling.
_LIMIT, _USUAL_LIMIT = "HighUtilization", 90


def filter_hosts(snapshot: Snapshot, request: Request) -> tuple[Verdict, ...]:
    """Refuse hosts that use more percent of their CPUs than the policy's `HighUtilization`."""
    late = tuple(Reason(NOT_KNOWN_YET, status=why) for why in unread(snapshot, HOST_STATISTICS))
    limit = whole_number(request.parameters, _LIMIT, _USUAL_LIMIT)

    def reasons(host_id: str) -> tuple[Reason, ...]:
        host = snapshot.host_by_id.get(host_id)
        if host is None or (host.cpu_percent is None and not host.measured):
            return late
        if host.cpu_percent is None:
            return (Reason(NO_CPU_STATISTICS, host=host_id),)
        load = shared_load(host, threads=snapshot.cluster_by_id[host.cluster].count_threads_as_cores)
        return (Reason(CPU_OVERLOADED, host=host_id, number=load),) if load > limit else ()

    return tuple(Verdict.of(host, reasons(host)) for host in request.candidate_hosts)


RULE = Rule(
    name="CPUOverloaded",
    kind=UnitKind.FILTER,
    ours=False,
    on_request=True,
    fixed=True,
    alike=lambda snapshot, vm: None,
    reads_hosts=True,
    filter=filter_hosts,
)
