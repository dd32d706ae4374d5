"""The scheduling policies and policy units that every engine ships, with their documented ids.

Source: the engine's InternalPolicyUnits and InternalClusterPolicies.
"""

from ovirt_simulator.core.entities import (
    PolicyFilter,
    PolicyUnit,
    PolicyWeight,
    SchedulingPolicy,
    UnitType,
    stable_id,
)

_FILTERS = {
    "CPU": "6d636bf6-a35c-4f9d-b68d-0731f720cddc",
    "CPUOverloaded": "98842bc5-4094-4b83-8224-7b50f86a94c9",
    "Emulated-Machine": "58894b5b-d55d-4f85-8f82-5bf217e640b0",
    "HA": "e659c871-0bf1-4ccc-b748-f28f5d08dffd",
    "Swap": "43b9e654-337f-4b0d-a896-cbb22ce5a7fc",
    "Memory": "c9ddbb34-0e1d-4061-a8d7-b0893fa80932",
    "NUMA": "fcbfe4b1-b83e-4428-b9d3-b3d348b93be6",
    "HugePages": "23e07b34-66dd-4735-bc45-bcddded02c05",
    "Migration": "e659c871-0bf1-4ccc-b748-f28f5d08ddda",
    "VmAffinityGroups": "84e6ddee-ab0d-42dd-82f0-c297779db566",
    "VmToHostsAffinityGroups": "e69808a9-8a41-40f1-94ba-dd5d385d82d8",
    "Network": "72163d1c-9468-4480-99d9-0888664eb143",
    "HostedEngineSpares": "53bff075-8306-446f-a53b-9c872a29d197",
    "Migration-Tsc-Frequency": "47ea3cd0-8a2f-438d-9f63-49534178882a",
    "Host-hooks": "aae8c702-4756-4934-b84c-8daf59efc134",
}
#: CPU comes first and Host-hooks last.
_POSITIONS = {"CPU": -1, "Host-hooks": 1}
#: Weight units of policy `none`: id and factor.
_WEIGHTS = {
    "OptimalForCpuEvenDistribution": ("7db4ab05-81ab-42e8-868a-aee2df483edb", 2),
    "OptimalForMemoryEvenDistribution": ("4134247a-9c58-4b9a-8593-530bb9e37c59", 1),
    "PreferredHosts": ("591cdb81-ba67-45b4-9642-e28f61a97d57", 99),
    "HA": ("98e92667-6161-41fb-b3fa-34f820ccbc4b", 1),
    "OptimalForHaReservation": ("7f262d70-6cac-11e3-981f-0800200c9a66", 1),
    "VmAffinityGroups": ("84e6ddee-ab0d-42dd-82f0-c297779db567", 1),
    "VmToHostsAffinityGroups": ("427aed70-dae3-48ba-8fe9-a902a9d563c8", 20),
    "CPU for high performance VMs": ("71931e14-f0e6-4f91-a7c8-d494a26e3a09", 4),
    "CPU and NUMA pinning compatibility": ("1b14ac11-20e9-4593-a149-2eb83c60a330", 5),
}
NO_BALANCE = "38440000-8cf0-14bd-c43e-10b96e4ef00a"
EVEN_BALANCE = stable_id(UnitType.LOAD_BALANCING, "OptimalForEvenDistribution")

VM_AFFINITY_FILTER = _FILTERS["VmAffinityGroups"]

#: How the state file's `policy` of a cluster names the engine's own weight units.
STATE_FILE_WEIGHTS = {
    "vm_affinity_weight": _WEIGHTS["VmAffinityGroups"][0],
    "vm_to_host_weight": _WEIGHTS["VmToHostsAffinityGroups"][0],
    "ha_weight": _WEIGHTS["OptimalForHaReservation"][0],
    "even_cpu_weight": _WEIGHTS["OptimalForCpuEvenDistribution"][0],
    "even_memory_weight": _WEIGHTS["OptimalForMemoryEvenDistribution"][0],
    "preferred_hosts_weight": _WEIGHTS["PreferredHosts"][0],
}

#: Source: PolicyUnitParameter.
_OVERLOAD = {"HighUtilization": "^([5-9][0-9])$", "CpuOverCommitDurationMinutes": "^([1-9][0-9]*)$"}
_CPU_RATIO = {"VCpuToPhysicalCpuRatio": "^([0-2](\\.([0-9]+))?)$"}
_FREE_MEMORY = {
    "MaxFreeMemoryForOverUtilized": "^([1-9][0-9]*)$",
    "MinFreeMemoryForUnderUtilized": "^([1-9][0-9]*)$",
}

_PROPERTIES = {
    "CPUOverloaded": _OVERLOAD,
    "Swap": {"MaximumAllowedSwapUsage": "^1?[0-9]?[0-9]$"},
    "HostedEngineSpares": {"HeSparesCount": "^([0-9][0-9]*)$"},
    "OptimalForCpuEvenDistribution": _CPU_RATIO,
    "OptimalForEvenDistribution": _OVERLOAD | _FREE_MEMORY | _CPU_RATIO,
    "OptimalForHaReservation": {"ScaleDown": "(100|[1-9]|[1-9][0-9])$"},
}

NONE_POLICY = "b4ed2332-a7ac-4d5f-9596-99a439cb2812"
EVENLY_DISTRIBUTED_POLICY = "20d25257-b4bd-4589-92a6-c4c5c5d3fd1a"


def units() -> tuple[PolicyUnit, ...]:
    """Give the engine's own units, as its API shows them: without the filters that count in every policy."""
    return (
        *(_unit(name, UnitType.FILTER, unit) for name, unit in _FILTERS.items()),
        *(_unit(name, UnitType.WEIGHT, unit) for name, (unit, _) in _WEIGHTS.items()),
        _unit("None", UnitType.LOAD_BALANCING, NO_BALANCE),
        _unit("OptimalForEvenDistribution", UnitType.LOAD_BALANCING, EVEN_BALANCE),
    )


def policies() -> tuple[SchedulingPolicy, ...]:
    """Give the engine's own policies; all are locked."""
    return (
        _policy(NONE_POLICY, "none", NO_BALANCE, default=True),
        _policy(EVENLY_DISTRIBUTED_POLICY, "evenly_distributed", EVEN_BALANCE),
        _policy("5a2b0939-7d46-4b73-a469-e9c2c7fc6a53", "power_saving", NO_BALANCE),
        _policy("8d5d7bec-68de-4a67-b53e-0ac54686d579", "vm_evenly_distributed", NO_BALANCE),
        _policy("7677771e-5eab-422e-83fa-dc04080d21b7", "cluster_maintenance", NO_BALANCE),
    )


def _unit(name: str, kind: UnitType, unit: str) -> PolicyUnit:
    properties = _PROPERTIES.get(name, {})
    return PolicyUnit(id=unit, name=name, type=kind, internal=True, properties=properties)


def _policy(policy: str, name: str, balance: str, *, default: bool = False) -> SchedulingPolicy:
    return SchedulingPolicy(
        id=policy,
        name=name,
        locked=True,
        default=default,
        filters=tuple(
            PolicyFilter(unit=unit, position=_POSITIONS.get(name, 0)) for name, unit in _FILTERS.items()
        ),
        weights=tuple(PolicyWeight(unit=unit, factor=factor) for unit, factor in _WEIGHTS.values()),
        balance=balance,
        properties={"CpuOverCommitDurationMinutes": "2", "HighUtilization": "80"},
    )
