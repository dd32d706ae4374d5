"""Policy units for placement keys; the rules are in `ovirt_placement.rules.placement_keys`."""

from __future__ import annotations

from ovirt_placement.units import PARAMETERS, Properties, accepted_hosts, answers, ranked_hosts


class PlacementKeyFilter:
    properties_validation = PARAMETERS["PlacementKeyFilter"]

    @answers
    def do_filter(self, hosts: list[str], vm: str, args: Properties) -> list[str]:
        """Refuse hosts without room for the VM, and those that the operator's placement keys refuse.

        Room is memory for the VM and placement_overhead MiB more (default 1024), both not handed out
        and physically free. A score must exceed placement_final (default -10). Use it with
        PlacementKeyWeight, with the same parameters.
        """
        return accepted_hosts("PlacementKeyFilter", hosts, vm, args)


class PlacementKeyWeight:
    properties_validation = PARAMETERS["PlacementKeyWeight"]

    @answers
    def do_score(self, hosts: list[str], vm: str, args: Properties) -> list[tuple[str, int]]:
        """Prefer the hosts that the operator's placement keys find first; among these the customer's decide.

        Rounds go from placement_initial (default 80) to placement_final (-10) in placement_steps (10). It
        needs a factor above the sum of all others times the number of hosts, or their ranks outvote it.
        placement_tie says who decides between hosts that are equally good: chance (random, default) or the
        other weights (engine).
        """
        return ranked_hosts("PlacementKeyWeight", hosts, vm, args)
