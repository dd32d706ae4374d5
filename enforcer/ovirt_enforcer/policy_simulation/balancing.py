"""The balance of a cluster's policy: ours, or the engine's even distribution."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ovirt_placement.model import Cluster, Snapshot, Vm
from ovirt_placement.model.names import host_name
from ovirt_placement.rules.ha import balance as ha
from ovirt_placement.rules.ha import balance_policy
from ovirt_placement.rules.ha.usage import Measure, measure_of
from ovirt_placement.rules.load import even_distribution
from ovirt_placement.rules.load.even_distribution import LoadLimits, limits_of
from ovirt_placement.rules.parameters import decimal_number, whole_number
from ovirt_placement.rules.verdict import BalanceMove, BalanceRequest

_OURS = balance_policy.RULE.name
_EVEN = "OptimalForEvenDistribution"
#: Parameters of the engine's balances: even distribution has the first, saving power both.
_HIGH, _LOW = "HighUtilization", "LowUtilization"


@dataclass(frozen=True)
class Balance:
    """A balance that takes effect, with the parameters of its policy."""

    unit: str
    parameters: Mapping[str, str]

    def ask(self, snapshot: Snapshot, cluster: str, hosts: tuple[str, ...]) -> BalanceMove | None:
        """The VM that it gives away now, and where to; hosts count as having been busy for long."""
        if self.unit == _OURS:
            return balance_policy.balance(snapshot, BalanceRequest(hosts, self.parameters))
        busy = even_distribution.overloaded(snapshot, hosts, self._limits)
        return even_distribution.balance(snapshot, cluster, hosts, self._limits, busy)

    def reason(self, snapshot: Snapshot, vm: Vm, hosts: tuple[str, ...]) -> str:
        """Why a VM is given away, as a sentence."""
        host, limits = snapshot.host_by_id[vm.host or ""], self._limits
        name = host_name(host.id, snapshot)
        if self._for_ha(snapshot, vm, hosts):
            return _crowded(ha.spread(snapshot, vm.cluster, hosts, self._over, self._measure), host.id, name)
        if host.id in even_distribution.overloaded(snapshot, hosts, limits):
            return (
                f"host {name} uses {host.cpu_percent or 0:.0f} % of its CPU, and is overloaded from"
                f" {limits.high_utilization} % on"
            )
        if host.free_mb < limits.max_free_memory_for_over_utilized:
            return (
                f"host {name} has {host.free_mb} MiB of memory left, and is short of it below"
                f" {limits.max_free_memory_for_over_utilized} MiB"
            )
        return (
            f"host {name} has {limits.vcpu_to_physical_cpu_ratio:g} virtual CPUs or more for each of its own"
        )

    @property
    def _over(self) -> int:
        return whole_number(self.parameters, "ha_balance_over_utilization", ha.OVER_UTILIZATION)

    @property
    def _measure(self) -> Measure:
        return measure_of(self.parameters)

    @property
    def _limits(self) -> LoadLimits:
        if self.unit == _OURS:
            return limits_of(self.parameters)
        default = LoadLimits()

        def number(name: str, otherwise: int) -> int:
            return whole_number(self.parameters, name, otherwise)

        return LoadLimits(
            high_utilization=number(_HIGH, default.high_utilization),
            max_free_memory_for_over_utilized=number("MaxFreeMemoryForOverUtilized", 0),
            min_free_memory_for_under_utilized=number("MinFreeMemoryForUnderUtilized", 0),
            vcpu_to_physical_cpu_ratio=decimal_number(self.parameters, "VCpuToPhysicalCpuRatio"),
        )

    def _for_ha(self, snapshot: Snapshot, vm: Vm, hosts: tuple[str, ...]) -> bool:
        if self.unit != _OURS:
            return False
        move = ha.balance(snapshot, vm.cluster, hosts, self._over, self._measure)
        return move is not None and move.vm == vm.id


def _crowded(spread: ha.Spread, host: str, name: str) -> str:
    """Why a host gives highly available VMs away."""
    now, share, threshold = spread.used[host], spread.share, spread.threshold
    if spread.measure is Measure.VMS:
        return (
            f"host {name} has {now} highly available VMs; its even share is {share}, and from {threshold}"
            " on it has too many"
        )
    return (
        f"highly available VMs take {100 * float(now):.1f} % of the memory and CPUs of host {name} on"
        f" average; its even share is {100 * float(share):.1f} %, and from {100 * float(threshold):.1f} % on"
        " it has too much"
    )


def balance_of(cluster: Cluster) -> Balance | None:
    """The balance of a cluster; None if it has none, or one that is not known here.

    A state file need not name the engine's own: then one that its parameters give away counts, since a
    cluster whose policy evens out load has `HighUtilization` among its own.
    """
    parameters = cluster.scheduling_properties
    named = cluster.scheduling_policy.balance if cluster.scheduling_policy is not None else None
    if named is not None and named in (_OURS, _EVEN):
        return Balance(named, parameters)
    if named is None and _HIGH in parameters and _LOW not in parameters:
        return Balance(_EVEN, parameters)
    return None
