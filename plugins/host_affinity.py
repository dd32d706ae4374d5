"""Policy units for affinity between VMs and hosts: the contract, and calls into the rules."""

from __future__ import annotations

from ovirt_placement.rules.affinity import host_filter, host_weight
from ovirt_placement.rules.verdict import Request
from ovirt_placement.units.plugin import Properties, answers, log_ranks, log_refusals, snapshot_with


class HostAffinityFilter:
    @answers
    def do_filter(self, hosts: list[str], vm: str, args: Properties) -> list[str]:
        """Keep a VM on the hosts of its hard positive affinity groups, and off those of its negative ones.

        A positive group that lists no host counts as not configured. Labels with the implicit flag act
        as positive groups in clusters below 4.4. Enable it beside the engine's own filter
        VmToHostsAffinityGroups.
        """
        snapshot = snapshot_with(vm)
        verdicts = host_filter.filter_hosts(snapshot, Request((vm,), tuple(hosts)))
        log_refusals("HostAffinityFilter", vm, verdicts, snapshot)
        return [verdict.host for verdict in verdicts if verdict.accepted]


class HostAffinityWeight:
    @answers
    def do_score(self, hosts: list[str], vm: str, args: Properties) -> list[tuple[str, int]]:
        """Prefer hosts that break the least important soft affinity groups between VMs and hosts.

        Takes the place of the engine's own weight VmToHostsAffinityGroups: the same order, with fixed
        ties.
        """
        snapshot = snapshot_with(vm)
        weights = host_weight.rank_hosts(snapshot, Request((vm,), tuple(hosts)))
        log_ranks("HostAffinityWeight", vm, weights, snapshot)
        return [(weight.host, weight.rank) for weight in weights]
