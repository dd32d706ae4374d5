"""Policy units for HA reservation; the rules are in `ovirt_placement.rules.ha`."""

from __future__ import annotations

from ovirt_placement.units import PARAMETERS, Properties, accepted_hosts, answers, chosen_move, ranked_hosts


class HaReservationWeight:
    properties_validation = PARAMETERS["HaReservationWeight"]

    @answers
    def do_score(self, hosts: list[str], vm: str, args: Properties) -> list[tuple[str, int]]:
        """Send highly available VMs to hosts of which they use least, in clusters with HA reservation.

        Enable it next to the engine's own weight OptimalForHaReservation. ha_measure says what counts: the
        memory and CPUs that they take (resources), or how many they are (vms). ha_weight_scale_down (1 to
        100) makes small differences ties. Nothing is sent to the hosts that ha_failover_hosts names while
        another will do. ha_failures says how many failed hosts ha-check is to survive.
        """
        return ranked_hosts("HaReservationWeight", hosts, vm, args)


class HaReservationBalance:
    properties_validation = PARAMETERS["HaReservationBalance"]

    @answers
    def do_balance(self, hosts: list[str], args: Properties) -> tuple[str, list[str]]:
        """Spread highly available VMs evenly, then load as the engine's evenly_distributed does.

        A host gives away a highly available VM when they use over_utilization percent of the even share
        (default 200) of it, by ha_measure as in HaReservationWeight. The other parameters are those of
        OptimalForEvenDistribution. The hosted engine is never moved, and nothing is sent to a dedicated
        failover host.
        """
        return chosen_move("HaReservationBalance", hosts, args)


class HaAdmissionFilter:
    properties_validation = PARAMETERS["HaAdmissionFilter"]

    @answers
    def do_filter(self, hosts: list[str], vm: str, args: Properties) -> list[str]:
        """Refuse starts that take the room which highly available VMs need to restart after a failure.

        For clusters with HA reservation: of every ha_failures hosts, and of each failure domain, named by
        tags of hosts (ha_admission_domain_tags: their prefixes) or listed (ha_admission_domains:
        NAME:HOST,HOST/NAME:HOST). Migrations are not refused, nor highly available VMs that crashed, or
        while a host has failed.
        """
        return accepted_hosts("HaAdmissionFilter", hosts, vm, args)


class HaAdmissionWeight:
    properties_validation = PARAMETERS["HaAdmissionWeight"]

    @answers
    def do_score(self, hosts: list[str], vm: str, args: Properties) -> list[tuple[str, int]]:
        """Put hosts last that HaAdmissionFilter would refuse, in clusters with HA reservation."""
        return ranked_hosts("HaAdmissionWeight", hosts, vm, args)
