"""Policy units for affinity between VMs; the rules are in `ovirt_placement.rules.affinity`."""

from __future__ import annotations

from ovirt_placement.units import PARAMETERS, Properties, accepted_hosts, answers, ranked_hosts


class AffinityFilter:
    properties_validation = PARAMETERS["AffinityFilter"]

    @answers
    def do_filter(self, hosts: list[str], vm: str, args: Properties) -> list[str]:
        """Keep the VMs of hard affinity groups together, or apart.

        Positive groups that share VMs count as one group. A migrating VM keeps the VMs of its negative
        groups off both its hosts. Enable it next to the engine's own filter VmAffinityGroups.
        affinity_missing_unit says what becomes of VMs with soft groups that no weight of the policy
        looks at: report (default) or reject.
        """
        return accepted_hosts("AffinityFilter", hosts, vm, args)


class SoftAffinityWeight:
    @answers
    def do_score(self, hosts: list[str], vm: str, args: Properties) -> list[tuple[str, int]]:
        """Prefer hosts that violate the least important affinity groups, then those with more peers.

        Enable it next to the engine's own weight VmAffinityGroups: the same order, and where that ties,
        hosts with fewer VMs that this one should stay apart from come first.
        """
        return ranked_hosts("SoftAffinityWeight", hosts, vm, args)


class HardAffinityWeight:
    @answers
    def do_score(self, hosts: list[str], vm: str, args: Properties) -> list[tuple[str, int]]:
        """Prefer the hosts of VMs that hard affinity groups tie to this one through VMs that are down.

        The engine does not see these. It leads while VMs start at once, when no host is refused for what is
        only expected. It needs a factor above the sum of all others times the number of hosts.
        """
        return ranked_hosts("HardAffinityWeight", hosts, vm, args)
