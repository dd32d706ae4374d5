"""The units of placement keys: hosts without room or that keys shut out, and those that keys find first.

VMs whose placement keys refuse the host that they run on, as constraints: on a host that these accept.
What keys accept hangs on where all other VMs are, so such a constraint is satisfied for the moment only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar, Final

from ovirt_placement.model import Snapshot
from ovirt_placement.model.snapshot import HOST_STATISTICS, STORED, VM_DETAILS
from ovirt_placement.rules.affinity.groups import parting_hosts
from ovirt_placement.rules.affinity.host_groups import OnHosts
from ovirt_placement.rules.elements.placement import why_immovable
from ovirt_placement.rules.elements.rule import Dependence, Rule, Scope, UnitKind
from ovirt_placement.rules.elements.verdict import NOT_KNOWN_YET, Reason, Request, Verdict, Weight, unread
from ovirt_placement.rules.placement_keys import placing
from ovirt_placement.rules.placement_keys.keys import is_special
from ovirt_placement.rules.placement_keys.settings import read_settings, settings_of

#: Without these the filter refuses no host.
NEEDED: Final = (STORED, VM_DETAILS, HOST_STATISTICS)


class OnAcceptedHosts(OnHosts, frozen=True, kw_only=True):
    """One VM, and the hosts that its keys accept as things stand."""

    family: ClassVar[str] = "placement_keys"
    asks: ClassVar[str] = "on a host that its placement keys accept"


def on_accepted_hosts(snapshot: Snapshot, cluster: str) -> Iterator[OnAcceptedHosts]:
    """One for each VM that may be migrated and would not be let in again where it runs.

    None where the cluster's policy has no filter by keys.
    """
    if not KEY_FILTER.enabled_in(snapshot.cluster_by_id[cluster]):
        return
    hosts = tuple(host.id for host in snapshot.hosts_of_cluster.get(cluster, ()) if host.up)
    parameters = snapshot.cluster_by_id[cluster].scheduling_properties
    for vm in snapshot.vms:
        if vm.cluster == cluster and vm.host in hosts and why_immovable(snapshot, vm) is None:
            request = Request((vm.id,), hosts, explained=False)
            verdicts = placing.filter_hosts(snapshot, request, settings_of(parameters))
            accepted = frozenset(one.host for one in verdicts if one.accepted)
            if vm.host not in accepted:
                yield OnAcceptedHosts(groups=(), vms=(vm.id,), hard=True, priority=0.0, hosts=accepted)


def filter_by_keys(snapshot: Snapshot, request: Request) -> tuple[Verdict, ...]:
    """Refuse hosts by the policy's parameters."""
    if late := unread(snapshot, *NEEDED):
        reasons = tuple(Reason(NOT_KNOWN_YET, status=why) for why in late)
        return tuple(Verdict(host, accepted=True, reasons=reasons) for host in request.candidate_hosts)
    return placing.filter_hosts(snapshot, request, settings_of(request.parameters))


def complaints(parameters: Mapping[str, str]) -> Iterator[str]:
    """What is wrong with parameters that are fine each by itself: a placement must not fail by them."""
    try:
        settings = read_settings(parameters)
    except ValueError as error:
        yield f"the policy's placement parameters are not used: {error}"
        return
    if settings.refuses_keyless_vms:
        yield f"placement_final is {float(settings.final):g}: VMs without placement keys find no host"


def _only_narrows(snapshot: Snapshot, vm: str, others: frozenset[str]) -> bool:
    """A host's special keys change with what it runs; what VMs bring does not matter to the filter."""
    return not any(map(is_special, placing.compiled_keys(snapshot, vm).system))


KEY_FILTER = Rule(
    name="PlacementKeyFilter",
    kind=UnitKind.FILTER,
    complaints=complaints,
    on_request=True,
    reads=frozenset((HOST_STATISTICS,)),
    filter=filter_by_keys,
    depends_on=Dependence(scope=Scope.HOST, only_narrows=_only_narrows),
)


#: More than all usual weights together can give in a cluster of 600 hosts.
_USUAL_FACTOR = 100_000


def rank_hosts(snapshot: Snapshot, request: Request) -> tuple[Weight, ...]:
    """Rank hosts by the policy's parameters.

    Ties are drawn by the lots that the request holds, unless `placement_tie` leaves them to the engine or no
    key says anything of the VM: this unit usually leads, and a lot would outvote all other weights. For the
    same reason hosts that would tear a chain of hard affinity groups come last.
    """
    draws = any(placing.draws_lots(snapshot, vm, request.parameters) for vm in request.vms)
    return placing.rank_hosts(
        snapshot,
        request,
        settings_of(request.parameters),
        tie_order=request.drawn if draws else (),
        last={host for vm in request.vms for host in parting_hosts(snapshot, vm, request.candidate_hosts)},
    )


KEY_WEIGHT = Rule(
    name="PlacementKeyWeight",
    kind=UnitKind.WEIGHT,
    complaints=complaints,
    on_request=True,
    usual_factor=_USUAL_FACTOR,
    draws=True,
    reads=frozenset((HOST_STATISTICS,)),
    weight=rank_hosts,
)
