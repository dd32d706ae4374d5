"""Policy units for affinity of VMs to hosts; the rules are in `ovirt_placement.rules.affinity`."""

from __future__ import annotations

from ovirt_placement.units import Properties, accepted_hosts, answers, ranked_hosts


class HostAffinityFilter:
    @answers
    def do_filter(self, hosts: list[str], vm: str, args: Properties) -> list[str]:
        """Keep a VM on the hosts of its hard positive affinity groups, and off those of its negative ones.

        A positive group that lists no host counts as not configured. Labels with the implicit flag act
        as positive groups in clusters below 4.4. Enable it next to the engine's own filter
        VmToHostsAffinityGroups.
        """
        return accepted_hosts("HostAffinityFilter", hosts, vm, args)


class HostAffinityWeight:
    @answers
    def do_score(self, hosts: list[str], vm: str, args: Properties) -> list[tuple[str, int]]:
        """Prefer hosts that violate the least important soft affinity groups between VMs and hosts.

        Enable it next to the engine's own weight VmToHostsAffinityGroups: the same order, with fixed
        ties.
        """
        return ranked_hosts("HostAffinityWeight", hosts, vm, args)
