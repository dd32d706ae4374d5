"""Our balance spreads highly available VMs first, then load: a policy holds but one balance."""

from __future__ import annotations

from ovirt_placement.model import Snapshot, Vm
from ovirt_placement.rules.ha import balance as ha
from ovirt_placement.rules.ha.usage import added, measure_of
from ovirt_placement.rules.load import even_distribution
from ovirt_placement.rules.load.even_distribution import limits_of
from ovirt_placement.rules.parameters import whole_number
from ovirt_placement.rules.rule import Rule, UnitKind
from ovirt_placement.rules.verdict import BalanceMove, BalanceRequest

_FOR_EVER = float("inf")


def balance(snapshot: Snapshot, request: BalanceRequest) -> BalanceMove | None:
    """Balance HA first, then load; a highly available VM moves for load only to where it does not crowd."""
    hosts, parameters = request.candidate_hosts, request.parameters
    cluster = _cluster_of(snapshot, hosts)
    if cluster is None:
        return None
    over = whole_number(parameters, "ha_balance_over_utilization", ha.OVER_UTILIZATION)
    reserving, measure = snapshot.cluster_by_id[cluster].ha_reservation, measure_of(parameters)
    spread = ha.spread(snapshot, cluster, hosts, over, measure)

    def permits(vm: Vm, host: str) -> bool:
        if not (reserving and vm.ha):
            return True
        more = added(snapshot, vm, host, measure)
        return spread.used[host] + more < max(spread.threshold, spread.share + more)

    return ha.balance(snapshot, cluster, hosts, over, measure) or even_distribution.balance(
        snapshot, cluster, hosts, limits_of(parameters), _busy(snapshot, request), permits
    )


def _cluster_of(snapshot: Snapshot, hosts: tuple[str, ...]) -> str | None:
    clusters = {snapshot.host_by_id[host].cluster for host in hosts if host in snapshot.host_by_id}
    return clusters.pop() if len(clusters) == 1 else None


def _busy(snapshot: Snapshot, request: BalanceRequest) -> frozenset[str]:
    """Hosts that are overloaded, and have been for as long as the policy asks."""
    minutes = whole_number(request.parameters, "ha_balance_cpu_over_commit_duration_minutes", 2)
    now = even_distribution.overloaded(snapshot, request.candidate_hosts, limits_of(request.parameters))
    return frozenset(host for host in now if request.overloaded_minutes.get(host, _FOR_EVER) >= minutes)


RULE = Rule(
    name="HaReservationBalance",
    kind=UnitKind.BALANCE,
    twins=("None", "OptimalForEvenDistribution"),
    reads_hosts=True,
    reads_vms=True,
    balance=balance,
)
