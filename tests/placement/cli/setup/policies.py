"""A small engine's clusters, the units of its policy `none`, and what there is to see of its policies."""

from ovirt_simulator.core.engine import Engine
from ovirt_simulator.core.entities import SchedulingPolicy, UnitType
from tests.builders import cluster, host, snapshot

STATE = snapshot(cluster("c1", name="blue"), cluster("c2", name="red"), host("h1", cluster="c1"))

#: The policy that setup makes.
OURS = "ovirt-placement"


#: What its policy `none` has of properties.
PROPERTIES = {"CpuOverCommitDurationMinutes": "2", "HighUtilization": "80"}
#: The engine's 15 filters and 9 weights of its policy `none`, by reference; `none` has no others that count.
FILTERS = {
    "CPU", "CPUOverloaded", "Emulated-Machine", "HA", "Swap", "Memory", "NUMA", "HugePages", "Migration",
    "VmAffinityGroups", "VmToHostsAffinityGroups", "Network", "HostedEngineSpares", "Migration-Tsc-Frequency",
    "Host-hooks",
}  # fmt: skip
#: The engine's weights next to which ours stand, by ours, and their factors in its policy `none`.
TWINS = {
    "SoftAffinityWeight": "VmAffinityGroups",
    "HostAffinityWeight": "VmToHostsAffinityGroups",
    "HaReservationWeight": "OptimalForHaReservation",
}
TWIN_WEIGHTS = {"VmAffinityGroups": 1, "VmToHostsAffinityGroups": 20, "OptimalForHaReservation": 1}
WEIGHTS = {
    **TWIN_WEIGHTS,
    "OptimalForCpuEvenDistribution": 2,
    "OptimalForMemoryEvenDistribution": 1,
    "PreferredHosts": 99,
    "HA": 1,
    "CPU for high performance VMs": 4,
    "CPU and NUMA pinning compatibility": 5,
}
OUR_FILTERS = {"AffinityFilter", "HostAffinityFilter", "PlacementRuleFilter"}
OUR_WEIGHTS = {
    "HardAffinityWeight": 100_000,
    "SoftAffinityWeight": 1,
    "HostAffinityWeight": 20,
    "PlacementRuleWeight": 20,
    "HaReservationWeight": 1,
}


def policy_named(engine: Engine, name: str) -> SchedulingPolicy:
    (found,) = (policy for policy in engine.queries.state.policies.values() if policy.name == name)
    return found


def filters(engine: Engine, policy: str = OURS) -> list[str]:
    names = {unit.id: unit.name for unit in engine.queries.state.units.values()}
    return [names[entry.unit] for entry in policy_named(engine, policy).filters]


def weights(engine: Engine, policy: str = OURS) -> dict[str, int]:
    names = {unit.id: unit.name for unit in engine.queries.state.units.values()}
    return {names[entry.unit]: entry.factor for entry in policy_named(engine, policy).weights}


def balance(engine: Engine, policy: str = OURS) -> str | None:
    own = policy_named(engine, policy).balance
    return next((unit.name for unit in engine.queries.state.units.values() if unit.id == own), None)


def unit_id(engine: Engine, name: str, kind: UnitType | None = None) -> str:
    """Of a filter and a weight that share their name, the kind says which."""
    (found,) = (
        unit.id
        for unit in engine.queries.state.units.values()
        if unit.name == name and kind in {None, unit.type}
    )
    return found


def made(
    engine: Engine, name: str, filters: str = "", balance: str = "", *, factors: dict[str, int] | None = None
) -> str:
    """A policy as an administrator makes it, with weights by their factors; its id."""
    policy = engine.policies.add(name, description="of the site").id
    for unit in filters.split():
        engine.policies.attach("filters", policy, unit_id(engine, unit, UnitType.FILTER))
    for unit, factor in (factors or {}).items():
        engine.policies.attach("weights", policy, unit_id(engine, unit, UnitType.WEIGHT), factor=factor)
    if balance:
        engine.policies.attach("balances", policy, unit_id(engine, balance, UnitType.LOAD_BALANCING))
    return policy


def check_complete(engine: Engine, policy: str = OURS) -> None:
    """Check that the policy is `none` but for our filters and weights next to its own, and our balance."""
    assert sorted(filters(engine, policy)) == sorted(FILTERS | OUR_FILTERS)
    assert weights(engine, policy) == WEIGHTS | OUR_WEIGHTS
    assert balance(engine, policy) == "HaReservationBalance"
    assert policy_named(engine, policy).properties == PROPERTIES


def cluster_policy(engine: Engine, cluster_id: str) -> str:
    found = engine.queries.state.clusters[cluster_id].policy_id
    policy = engine.queries.state.policies.get(found)
    assert policy is not None
    return policy.name
