"""Reads scheduling policies whole, and sends the requests that change them."""

from __future__ import annotations

from dataclasses import dataclass

from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.connection.failures import EngineFault, EngineSetupError
from ovirt_placement.engine.parsing import clusters as cluster_parsing
from ovirt_placement.engine.parsing import policies as parsing
from ovirt_placement.engine.parsing.policies import Entry, PolicyHead, PolicyUnit
from ovirt_placement.engine.reading.policies import read_collection, read_entries

#: Stands in a request, as an id, for that of a policy which is still to be made.
NEW = "NEW"


@dataclass(frozen=True)
class PolicyContent:
    """A policy with its units; a unit that stands twice is the engine's mistake, and is shown so."""

    head: PolicyHead
    filters: tuple[Entry, ...]
    weights: tuple[Entry, ...]
    balances: tuple[Entry, ...]

    @property
    def units(self) -> tuple[str, ...]:
        """Ids of all its units."""
        return tuple(entry.unit for entry in (*self.filters, *self.weights, *self.balances))


@dataclass(frozen=True)
class PolicyUser:
    """A cluster with the policy it is assigned, and its own values of the policy's properties."""

    id: str
    name: str
    policy: str | None
    properties: dict[str, str]


@dataclass(frozen=True)
class PolicyRequest:
    """One change of the engine, and what it is for."""

    what: str
    method: str
    path: str
    body: bytes = b""
    #: The id of the unit that it attaches to a policy: the engine must never be asked twice for that.
    unit: str | None = None


def read_units(connection: EngineConnection) -> dict[str, PolicyUnit]:
    """Read all policy units, by id. Raises what `EngineConnection.get` raises, as all here do."""
    return parsing.units(connection.get("/schedulingpolicyunits"))


def read_heads(connection: EngineConnection) -> tuple[PolicyHead, ...]:
    return parsing.heads(connection.get("/schedulingpolicies"))


def read_content(connection: EngineConnection, head: PolicyHead) -> PolicyContent:
    """Read the units of a policy."""
    return PolicyContent(head, *read_entries(connection, head.id))


def read_users(connection: EngineConnection) -> tuple[PolicyUser, ...]:
    """Read the clusters."""
    found = cluster_parsing.read(connection.get("/clusters"))
    return tuple(
        PolicyUser(each.id, each.name, found.policies.get(each.id), each.scheduling_properties)
        for each in found.clusters
    )


def send(connection: EngineConnection, request: PolicyRequest, policy_id: str | None) -> str | None:
    """Send a request unless its unit is attached already; return the id of the policy that it concerns.

    The engine keeps a unit that it was given twice, and refuses every later change of the policy until it
    restarts. So the policy is read again just before.
    """
    path = request.path.replace(f"/{NEW}", f"/{policy_id}")
    body = request.body.replace(f'id="{NEW}"'.encode(), f'id="{policy_id}"'.encode())
    if request.unit is not None and request.unit in {
        entry.unit for entry in read_collection(connection, path)
    }:
        return policy_id
    try:
        answer = connection.send(request.method, path, body)
    except EngineFault as fault:
        if fault.code == 403:
            raise _permission_missing(connection, path) from None
        raise
    if request.method == "POST" and path == "/schedulingpolicies":
        return parsing.head(answer).id
    return policy_id


def _permission_missing(connection: EngineConnection, path: str) -> EngineSetupError:
    permit = (
        "edit_cluster_configuration on the cluster"
        if path.startswith("/clusters/")
        else "edit_storage_pool_configuration on the system"
    )
    return EngineSetupError(
        f"{connection.settings.username} may not change {path}: it needs the permit {permit};"
        " SuperUser has it"
    )
