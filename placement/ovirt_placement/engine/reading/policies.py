"""Reads what a scheduling policy enables: few requests, but for things that change once a month."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from msgspec.structs import replace

from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.parsing import policies as parsing
from ovirt_placement.engine.parsing.clusters import Clusters
from ovirt_placement.engine.parsing.policies import Entry, PolicyUnit
from ovirt_placement.engine.reading.requests import get_collection, get_entity
from ovirt_placement.model import Cluster, SchedulingPolicy

#: How long a policy is believed; an administrator who changed one waits no longer than this.
BELIEVED_SECONDS = 60.0

#: What the state file calls the engine's own weight units; others keep the engine's name.
_WEIGHTS = {
    "VmAffinityGroups": "vm_affinity_weight",
    "VmToHostsAffinityGroups": "vm_to_host_weight",
    "OptimalForHaReservation": "ha_weight",
    "OptimalForCpuEvenDistribution": "even_cpu_weight",
    "OptimalForMemoryEvenDistribution": "even_memory_weight",
    "PreferredHosts": "preferred_hosts_weight",
}


#: What the engine calls the entries of each collection of a policy.
ENTRIES = {"filters": "filter", "weights": "weight", "balances": "balance"}

#: The engine's balance that does nothing, as some versions call it.
_NO_BALANCE = "None"


@dataclass(frozen=True)
class Policy:
    """What one scheduling policy enables."""

    #: Factors of the engine's own weight units, by the state file's names.
    factors: dict[str, int] = field(default_factory=dict)
    #: The external units; None if the engine does not report it.
    external: SchedulingPolicy | None = None


class PolicyReader:
    """Reads policies when they are asked for, and remembers them for a while; for any thread.

    Threads that ask at the same time wait for one another: mostly they ask for the same policy.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._believed_until = 0.0
        self._units: Mapping[str, PolicyUnit] = {}
        self._policies: dict[str, Policy] = {}

    def forget(self) -> None:
        """Read everything again the next time: a policy was changed."""
        self._believed_until = 0.0

    def read(self, connection: EngineConnection, policy_ids: set[str]) -> Mapping[str, Policy]:
        """Return these policies by id; raises what `EngineConnection.get` raises."""
        with self._lock:
            if time.monotonic() >= self._believed_until:
                self._policies, self._units = {}, {}
                self._believed_until = time.monotonic() + BELIEVED_SECONDS
            for policy_id in policy_ids - self._policies.keys():
                self._units = self._units or parsing.units(
                    get_collection(connection, "/schedulingpolicyunits")
                )
                self._policies[policy_id] = _read(connection, policy_id, self._units)
            return {policy_id: self._policies[policy_id] for policy_id in policy_ids}


def with_policies(
    connection: EngineConnection, found: Clusters, policies: PolicyReader
) -> tuple[Cluster, ...]:
    """Return the clusters with what their scheduling policies enable."""
    known = policies.read(connection, set(found.policies.values()))
    unknown = Policy()
    return tuple(
        replace(cluster, policy=policy.factors, scheduling_policy=policy.external)
        for cluster in found.clusters
        for policy in (known.get(found.policies.get(cluster.id, ""), unknown),)
    )


def _balance(unit: PolicyUnit | None) -> str | None:
    """The name of a balance, the engine's own as well; None for its unit that does nothing."""
    return None if unit is None or not unit.enabled or unit.name == _NO_BALANCE else unit.name


def _read(connection: EngineConnection, policy_id: str, units: Mapping[str, PolicyUnit]) -> Policy:
    filters, weights, balances = read_entries(connection, policy_id)
    held = filters or weights or balances or get_entity(connection, "/schedulingpolicies", policy_id)
    if not units or not held:  # none of this id, unlike one that is empty
        return Policy()
    factors = {entry.unit: entry.number for entry in weights}
    return policy_of(
        units, [entry.unit for entry in filters], factors, next((entry.unit for entry in balances), None)
    )


def read_entries(connection: EngineConnection, policy_id: str) -> tuple[tuple[Entry, ...], ...]:
    """Read the filters, weights and balances of a policy: its weights cannot be followed."""
    paths = (f"/schedulingpolicies/{policy_id}/{collection}" for collection in ENTRIES)
    return tuple(read_collection(connection, path) for path in paths)


def read_collection(connection: EngineConnection, path: str) -> tuple[Entry, ...]:
    """Read one of them; raises what `EngineConnection.get` raises."""
    return parsing.entries(get_collection(connection, path), ENTRIES[path.rpartition("/")[2]])


def policy_of(
    units: Mapping[str, PolicyUnit], filters: Iterable[str], weights: Mapping[str, int], balance: str | None
) -> Policy:
    """Name what a policy enables that holds these units, by id, with these factors."""
    ids = (*filters, *weights, *((balance,) if balance else ()))
    held = {each: units[each] for each in ids if each in units}
    outside = {each: unit.name for each, unit in held.items() if unit.enabled and not unit.internal}
    named = {each: _WEIGHTS.get(held[each].name, held[each].name) for each in weights if each in held}
    inside = {each: unit.name for each, unit in held.items() if unit.internal}
    return Policy(
        factors={name: weights[each] for each, name in named.items() if each in inside},
        external=SchedulingPolicy(
            filters=tuple(outside[each] for each in filters if each in outside),
            unit_ids={name: each for each, name in named.items()},
            engine_filters=tuple(sorted(inside[each] for each in filters if each in inside)),
            weights={outside[each]: factor for each, factor in weights.items() if each in outside},
            balance=_balance(units.get(balance or "")),
            disabled=tuple(unit.name for unit in held.values() if not unit.internal and not unit.enabled),
        ),
    )
