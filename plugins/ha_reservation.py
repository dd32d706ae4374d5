"""Policy units for HA reservation: the contract, and calls into the rules."""

from __future__ import annotations

from time import monotonic

from ovirt_placement import inventory
from ovirt_placement.model import Snapshot, Vm
from ovirt_placement.rules.ha import balance, weight
from ovirt_placement.rules.load import even_distribution
from ovirt_placement.rules.load.even_distribution import Limits
from ovirt_placement.rules.load.moves import Move
from ovirt_placement.rules.verdict import Request
from ovirt_placement.units.plugin import Properties, answers, log_ranks, snapshot_with, whole_number


class HaReservationWeight:
    properties_validation = (
        "ha_weight_scale_down=(100|[1-9][0-9]?);"
        "ha_failures=[1-9];"
        "ha_failover_hosts=[A-Za-z0-9_.-]+(,[A-Za-z0-9_.-]+)*"
    )

    @answers
    def do_score(self, hosts: list[str], vm: str, args: Properties) -> list[tuple[str, int]]:
        """Send highly available VMs to the hosts with the fewest of them, in clusters with HA reservation.

        Takes the place of the engine's own weight OptimalForHaReservation. ha_weight_scale_down (1 to
        100) makes small differences ties. Nothing is sent to the hosts that ha_failover_hosts names while
        another will do. ha_failures says how many failed hosts ha-check is to survive.
        """
        scale_down = whole_number(args, "ha_weight_scale_down", 1)
        snapshot = snapshot_with(vm)
        weights = weight.rank_hosts(snapshot, Request((vm,), tuple(hosts)), scale_down=max(1, scale_down))
        log_ranks("HaReservationWeight", vm, weights, snapshot)
        return [(weight.host, weight.rank) for weight in weights]


class HaReservationBalance:
    properties_validation = (
        "ha_balance_over_utilization=[1-9][0-9]{0,3};"
        "ha_balance_high_utilization=[5-9][0-9];"
        "ha_balance_cpu_over_commit_duration_minutes=[1-9][0-9]*;"
        "ha_balance_max_free_memory_for_over_utilized=[1-9][0-9]*;"
        "ha_balance_min_free_memory_for_under_utilized=[1-9][0-9]*;"
        "ha_balance_vcpu_to_physical_cpu_ratio=[1-9][0-9]*"
    )

    @answers
    def do_balance(self, hosts: list[str], args: Properties) -> tuple[str, list[str]]:
        """Spread highly available VMs evenly, then load as the engine's evenly_distributed does.

        A host gives away a highly available VM when it holds over_utilization percent of the even share
        (default 200). The other parameters are those of OptimalForEvenDistribution. The hosted engine
        is never moved, and nothing is sent to a dedicated failover host.
        """
        snapshot = inventory.snapshot()
        move = _balance(snapshot, tuple(hosts), args)
        return (move.vm, list(move.hosts)) if move else ("", [])


class _Busy:
    """How long hosts have been overloaded, as far as this process has seen.

    What is overloaded at the first look is taken to have been so for long: a process of the old proxy
    never has a second one.
    """

    def __init__(self) -> None:
        self._since: dict[str, float] = {}
        self._looked = False

    def for_minutes(self, overloaded: frozenset[str], asked: frozenset[str], minutes: int) -> frozenset[str]:
        """Of the hosts that are overloaded now, those that have been for so many minutes."""
        now = monotonic()
        start = now if self._looked else float("-inf")
        self._looked = True
        others = {host: since for host, since in self._since.items() if host not in asked}
        self._since = others | {host: self._since.get(host, start) for host in overloaded}
        return frozenset(host for host in overloaded if now - self._since[host] >= 60 * minutes)


_busy = _Busy()


def _balance(snapshot: Snapshot, hosts: tuple[str, ...], args: Properties) -> Move | None:
    """Balance HA first, then load; a highly available VM moves for load only to where it does not crowd."""
    clusters = {snapshot.host_by_id[host].cluster for host in hosts if host in snapshot.host_by_id}
    if len(clusters) != 1:
        return None
    (cluster,) = clusters
    over = _parameter(args, "over_utilization", balance.OVER_UTILIZATION)
    limits = _limits(args)
    overloaded = even_distribution.overloaded(snapshot, hosts, limits)
    minutes = _parameter(args, "cpu_over_commit_duration_minutes", 2)
    busy = _busy.for_minutes(overloaded, frozenset(hosts), minutes)
    reserving = snapshot.cluster_by_id[cluster].ha_reservation
    spread = balance.spread(snapshot, cluster, hosts, over)

    def permits(vm: Vm, host: str) -> bool:
        return not (reserving and vm.ha) or spread.counts[host] + 1 < max(spread.threshold, spread.share + 1)

    return balance.balance(snapshot, cluster, hosts, over) or even_distribution.balance(
        snapshot, cluster, hosts, limits, busy, permits
    )


def _limits(args: Properties) -> Limits:
    default = Limits()
    return Limits(
        high_utilization=_parameter(args, "high_utilization", default.high_utilization),
        max_free_memory_for_over_utilized=_parameter(args, "max_free_memory_for_over_utilized", 0),
        min_free_memory_for_under_utilized=_parameter(args, "min_free_memory_for_under_utilized", 0),
        vcpu_to_physical_cpu_ratio=_parameter(args, "vcpu_to_physical_cpu_ratio", 0),
    )


def _parameter(args: Properties, name: str, default: int) -> int:
    return whole_number(args, f"ha_balance_{name}", default)
