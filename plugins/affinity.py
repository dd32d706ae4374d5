"""Policy units for affinity between VMs: the contract, and calls into the rules."""

from __future__ import annotations

from ovirt_placement.model import Snapshot
from ovirt_placement.rules.affinity import vm_filter, vm_weight
from ovirt_placement.rules.affinity.missing_units import missing_units
from ovirt_placement.rules.verdict import Kind, Request, Verdict
from ovirt_placement.units.plugin import (
    MissingUnitError,
    Properties,
    answers,
    log_notes,
    log_ranks,
    log_refusals,
    snapshot_with,
)


class AffinityFilter:
    properties_validation = "affinity_missing_unit=(report|reject)"

    @answers
    def do_filter(self, hosts: list[str], vm: str, args: Properties) -> list[str]:
        """Keep the VMs of hard affinity groups together, or apart.

        Positive groups that share VMs count as one group. A migrating VM keeps the VMs of its negative
        groups off both its hosts. Enable it beside the engine's own filter VmAffinityGroups.
        affinity_missing_unit says what becomes of VMs with soft groups that no weight of the policy
        looks at: report (default) or reject.
        """
        request = Request((vm,), tuple(hosts))
        snapshot = snapshot_with(vm)
        missing = missing_units(snapshot, vm)
        if missing and (args or {}).get("affinity_missing_unit") == "reject":
            raise MissingUnitError(missing, snapshot)
        log_notes("AffinityFilter", vm, missing, snapshot)
        verdicts = vm_filter.filter_hosts(snapshot, request)
        if _leaves_its_peers(snapshot, request):
            verdicts = tuple(_without_positive_veto(verdict) for verdict in verdicts)
        log_refusals("AffinityFilter", vm, verdicts, snapshot)
        return [verdict.host for verdict in verdicts if verdict.accepted]


class SoftAffinityWeight:
    @answers
    def do_score(self, hosts: list[str], vm: str, args: Properties) -> list[tuple[str, int]]:
        """Prefer hosts that break the least important affinity groups, then those with more peers.

        Takes the place of the engine's own weight VmAffinityGroups: the same order, and where that
        ties, hosts with fewer VMs that this one should stay apart from come first.
        """
        request = Request((vm,), tuple(hosts))
        snapshot = snapshot_with(vm)
        unfiltered = _lacks_the_filter(snapshot, vm)
        weights = vm_weight.rank_hosts(snapshot, request, hard_above_soft=unfiltered)
        log_ranks("SoftAffinityWeight", vm, weights, snapshot)
        return [(weight.host, weight.rank) for weight in weights]


def _leaves_its_peers(snapshot: Snapshot, request: Request) -> bool:
    """Whether a migration takes a VM away from positive peers that are all on its own present host.

    The engine moves a positive group as a whole, but asks for one VM at a time and never offers the
    source. A veto would keep such a group on its host for ever, in maintenance too; the engine's own
    filter has judged the group already.
    """
    (vm,) = request.vms
    present = snapshot.vm_by_id[vm].host
    gathered = vm_filter.positive_peers(snapshot, request.vms)
    return present not in request.candidate_hosts and set(gathered) == {present}


def _without_positive_veto(verdict: Verdict) -> Verdict:
    others = (reason for reason in verdict.reasons if reason.kind is not Kind.POSITIVE_PEER_ELSEWHERE)
    return Verdict.of(verdict.host, tuple(others))


def _lacks_the_filter(snapshot: Snapshot, vm: str) -> bool:
    """Whether hosts come here that no hard VM rule has judged, as far as is known of the policy."""
    policy = snapshot.cluster_by_id[snapshot.vm_by_id[vm].cluster].scheduling_policy
    return policy is not None and AffinityFilter.__name__ not in policy.filters
