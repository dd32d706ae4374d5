"""Scheduling policies: which units they enable, and how much the weights among them count; how they change.

Reading one takes few requests, but for things that change once a month.
"""

import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from msgspec.structs import replace

from ovirt_placement.engine import xml
from ovirt_placement.engine.clusters import Clusters, PolicyUser, parse_clusters
from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.requests import permitted, read_collection, read_entity
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
_UNIT = "scheduling_policy_unit"


@dataclass(frozen=True)
class PolicyUnit:
    """A policy unit; an external one is disabled while no proxy offers it."""

    name: str
    internal: bool
    enabled: bool
    #: filter, weight or load_balancing.
    type: str = ""
    #: The regular expression of each of its properties, by name.
    properties: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class PolicyHead:
    """A scheduling policy without its units."""

    id: str
    name: str
    description: str
    #: The engine's own ones cannot be changed.
    locked: bool
    properties: dict[str, str]


#: Units in a policy, by id; a filter has a position (-1 first, 1 last, 0 anywhere), a weight a factor.
Entries = Mapping[str, int]


def read_units(connection: EngineConnection) -> dict[str, PolicyUnit]:
    """Read all policy units, by id."""

    def parse(content: bytes) -> dict[str, PolicyUnit]:
        return {xml.identity(one): xml.record(PolicyUnit, one) for one in xml.elements(content, _UNIT)}

    return read_collection(connection, "/schedulingpolicyunits", parse)


def read_heads(connection: EngineConnection) -> tuple[PolicyHead, ...]:
    """Read all policies, without their units."""

    def parse(content: bytes) -> tuple[PolicyHead, ...]:
        return tuple(xml.record(PolicyHead, one) for one in xml.elements(content, "scheduling_policy"))

    return connection.read("/schedulingpolicies", parse)


def _entries(content: bytes, name: str) -> Iterator[tuple[str, int]]:
    """Read the `filter`, `weight` or `balance` entries of a policy; a spoilt policy has a unit twice."""
    for element in xml.elements(content, name):
        number = xml.number(element.find("position"), 0) if name == "filter" else 1
        # An entry has the id of its unit.
        unit = xml.reference(element.find(_UNIT)) or xml.identity(element)
        yield unit, xml.number(element.find("factor"), number)


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
        """Return these policies by id."""
        with self._lock:
            if time.monotonic() >= self._believed_until:
                self._policies, self._units = {}, {}
                self._believed_until = time.monotonic() + BELIEVED_SECONDS
            for policy_id in policy_ids - self._policies.keys():
                self._units = self._units or read_units(connection)
                self._policies[policy_id] = _read_policy(connection, policy_id, self._units)
            return {policy_id: self._policies[policy_id] for policy_id in policy_ids}


def with_policies(
    connection: EngineConnection, found: Clusters, policies: PolicyReader
) -> tuple[Cluster, ...]:
    """Return the clusters with what their scheduling policies enable."""
    known = policies.read(connection, {user.policy for user in found.users if user.policy is not None})
    unknown = Policy()
    return tuple(
        replace(cluster, policy=policy.factors, scheduling_policy=policy.external)
        for cluster, user in zip(found.clusters, found.users, strict=True)
        for policy in (known.get(user.policy or "", unknown),)
    )


def _read_policy(connection: EngineConnection, policy_id: str, units: Mapping[str, PolicyUnit]) -> Policy:
    filters, weights, balances = map(dict, read_entries(connection, policy_id))
    held = any((filters, weights, balances)) or read_entity(
        connection, "/schedulingpolicies", policy_id, bool
    )
    if not units or not held:  # none of this id, unlike one that is empty
        return Policy()
    return policy_of(units, filters, weights, next(iter(balances), None))


def read_entries(connection: EngineConnection, policy_id: str) -> Iterator[tuple[tuple[str, int], ...]]:
    """Read the filters, weights and balances of a policy: its weights cannot be followed."""
    for collection in ENTRIES:
        yield _read_entries(connection, f"/schedulingpolicies/{policy_id}/{collection}")


def _read_entries(connection: EngineConnection, path: str) -> tuple[tuple[str, int], ...]:
    name = ENTRIES[path.rpartition("/")[2]]
    return read_collection(connection, path, lambda content: tuple(_entries(content, name)))


def policy_of(
    units: Mapping[str, PolicyUnit], filters: Iterable[str], weights: Mapping[str, int], balance: str | None
) -> Policy:
    """Name what a policy enables that holds these units, by id, with these factors."""
    ids = (*filters, *weights, *((balance,) if balance else ()))
    held = {each: units[each] for each in ids if each in units}
    outside = {each: unit.name for each, unit in held.items() if unit.enabled and not unit.internal}
    named = {each: _WEIGHTS.get(held[each].name, held[each].name) for each in weights if each in held}
    inside = {each: unit.name for each, unit in held.items() if unit.internal}
    balancing = units.get(balance or "")
    return Policy(
        factors={name: weights[each] for each, name in named.items() if each in inside},
        external=SchedulingPolicy(
            filters=tuple(outside[each] for each in filters if each in outside),
            unit_ids={name: each for each, name in named.items()},
            engine_filters=tuple(sorted(inside[each] for each in filters if each in inside)),
            weights={outside[each]: factor for each, factor in weights.items() if each in outside},
            # The engine's own as well, but for its unit that does nothing.
            balance=balancing.name
            if balancing and balancing.enabled and balancing.name != _NO_BALANCE
            else None,
            disabled=tuple(unit.name for unit in held.values() if not unit.internal and not unit.enabled),
        ),
    )


#: Stands in a request, as an id, for that of a policy which is still to be made.
NEW = "NEW"


@dataclass(frozen=True)
class PolicyContent:
    """A policy with its units."""

    head: PolicyHead
    filters: Entries
    weights: Entries
    balances: Entries
    #: Units that stand twice, by the engine's mistake.
    repeated: tuple[str, ...] = ()

    @property
    def units(self) -> tuple[str, ...]:
        """Ids of all its units."""
        return (*self.filters, *self.weights, *self.balances)


@dataclass(frozen=True)
class PolicyRequest:
    """One change of the engine, and what it is for."""

    what: str
    method: str
    path: str
    body: bytes = b""
    #: The id of the unit that it attaches to a policy: the engine must never be asked twice for that.
    unit: str | None = None


def read_content(connection: EngineConnection, head: PolicyHead) -> PolicyContent:
    """Read the units of a policy."""
    filters, weights, balances = read_entries(connection, head.id)
    times = Counter(unit for unit, _ in (*filters, *weights, *balances))
    repeated = tuple(unit for unit, count in times.items() if count > 1)
    return PolicyContent(head, dict(filters), dict(weights), dict(balances), repeated)


def read_users(connection: EngineConnection) -> tuple[PolicyUser, ...]:
    """Read the clusters."""
    return connection.read("/clusters", parse_clusters).users


def send(connection: EngineConnection, request: PolicyRequest, policy_id: str | None) -> str | None:
    """Send a request unless its unit is attached already; return the id of the policy that it concerns.

    The engine keeps a unit that it was given twice, and refuses every later change of the policy until it
    restarts. So the policy is read again just before.
    """
    path = request.path.replace(f"/{NEW}", f"/{policy_id}")
    body = request.body.replace(f'id="{NEW}"'.encode(), f'id="{policy_id}"'.encode())
    if request.unit is not None and request.unit in dict(_read_entries(connection, path)):
        return policy_id
    permit = (
        "edit_cluster_configuration on the cluster"
        if path.startswith("/clusters/")
        else "edit_storage_pool_configuration on the system"
    )
    with permitted(connection, f"change {path}", f"{permit}; SuperUser has it"):
        answer = connection.send(request.method, path, body)
    if request.method == "POST" and path == "/schedulingpolicies":
        return connection.parsed(
            answer, lambda content: xml.identity(xml.entity(content, "scheduling_policy"))
        )
    return policy_id
