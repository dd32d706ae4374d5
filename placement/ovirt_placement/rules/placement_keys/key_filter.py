"""The unit that refuses hosts without room for a VM, and those that the operator's placement keys refuse."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ovirt_placement.model import Snapshot
from ovirt_placement.model.snapshot import HOST_STATISTICS, STORED, VM_DETAILS
from ovirt_placement.rules.placement_keys import placing
from ovirt_placement.rules.placement_keys.accepted_hosts import on_accepted_hosts
from ovirt_placement.rules.placement_keys.keys import is_special
from ovirt_placement.rules.placement_keys.settings import read_settings, settings_of
from ovirt_placement.rules.reasons import NOT_KNOWN_YET, Reason, unread
from ovirt_placement.rules.rule import Rule, Scope, UnitKind
from ovirt_placement.rules.verdict import Request, Verdict


def filter_hosts(snapshot: Snapshot, request: Request) -> tuple[Verdict, ...]:
    """Refuse hosts by the policy's parameters; the details of a verdict are the host's `HostDecision`."""
    if late := unread(snapshot, STORED, VM_DETAILS, HOST_STATISTICS):
        reasons = tuple(Reason(NOT_KNOWN_YET, status=why) for why in late)
        return tuple(Verdict(host, accepted=True, reasons=reasons) for host in request.candidate_hosts)
    return placing.filter_hosts(
        snapshot, request, settings_of(request.parameters), explained=request.explained
    )


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


RULE = Rule(
    name="PlacementKeyFilter",
    kind=UnitKind.FILTER,
    complaints=complaints,
    on_request=True,
    reads_hosts=True,
    scope=Scope.HOST,
    filter=filter_hosts,
    momentary=on_accepted_hosts,
    only_narrows=_only_narrows,
)
