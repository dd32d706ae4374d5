"""Policy units for placement rules; the rules are in `ovirt_placement.rules.placement_rules`."""

from __future__ import annotations

from ovirt_placement.units import Properties, accepted_hosts, answers, ranked_hosts


class PlacementRuleFilter:
    @answers
    def do_filter(self, hosts: list[str], vm: str, args: Properties) -> list[str]:
        """Keep hard placement rules: few VMs on a host or in a failure domain, even spread, licences.

        The rules stand in our store (ovirt-placement rules). Where there are none it accepts every host.
        """
        return accepted_hosts("PlacementRuleFilter", hosts, vm, args)


class PlacementRuleWeight:
    @answers
    def do_score(self, hosts: list[str], vm: str, args: Properties) -> list[tuple[str, int]]:
        """Prefer hosts that violate no placement rule, hard ones before soft ones, and then by priority.

        Among equals it prefers failure domains with fewer VMs of the rules that spread them.
        """
        return ranked_hosts("PlacementRuleWeight", hosts, vm, args)
