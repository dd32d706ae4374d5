"""Soft affinity that nobody weighs: rules that ask for a unit which the cluster's policy lacks."""

from __future__ import annotations

from msgspec.structs import replace

from ovirt_placement.model import Cluster, Snapshot
from ovirt_placement.rules.affinity import host_weight, vm_weight
from ovirt_placement.rules.affinity.membership import groups_of
from ovirt_placement.rules.reasons import Reason, ReasonKind
from ovirt_placement.rules.rule import Rule
from ovirt_placement.rules.verdict import Request

UNIT_MISSING = ReasonKind(
    "unit_missing",
    "{group} has a soft rule for VM {vm}, and the cluster's policy does not enable {unit}",
)
#: The same where the policy says to refuse the VM for it, as Nova does.
UNIT_MISSING_REFUSED = ReasonKind(UNIT_MISSING.name, UNIT_MISSING.sentence, veto=True, loud=True)

_WEIGHTS = (vm_weight.RULE, host_weight.RULE)


def missing_units(snapshot: Snapshot, vm_id: str) -> tuple[Reason, ...]:
    """Soft rules of a VM that mean nothing, since its cluster's policy weighs them with no unit.

    A unit with factor 0 weighs nothing either. Where the policy is not known nothing is missing. Hard
    rules are not asked about: whether the engine's own filters stand in the policy is not part of the
    cluster's state.
    """
    vm = snapshot.vm_by_id.get(vm_id)
    if vm is None:
        return ()
    cluster = snapshot.cluster_by_id[vm.cluster]
    lacking = [rule for rule in _WEIGHTS if not _weighs(cluster, rule)]
    return tuple(
        Reason(UNIT_MISSING, group.id, vm_id, unit=rule.name)
        for group in (groups_of(snapshot).get(vm_id, ()) if lacking else ())
        for rule in lacking
        if rule.asked_by_group is not None and rule.asked_by_group(snapshot, group)
    )


def refusals(snapshot: Snapshot, request: Request) -> tuple[Reason, ...]:
    """The same as vetoes, where the policy asks for that."""
    if request.parameters.get("affinity_missing_unit") != "reject":
        return ()
    return tuple(
        replace(missing, kind=UNIT_MISSING_REFUSED)
        for vm in request.vms
        for missing in missing_units(snapshot, vm)
    )


def _weighs(cluster: Cluster, rule: Rule) -> bool:
    own = cluster.scheduling_policy is None or rule.enabled_in(cluster)
    return own or cluster.policy.get(rule.twin_factor or "", 0) > 0
