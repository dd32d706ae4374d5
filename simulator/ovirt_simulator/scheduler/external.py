"""The external scheduler: XML-RPC calls as the engine's client makes them, and the units that they run.

Source: the engine's ExternalSchedulerBrokerImpl, ExternalSchedulerBrokerObjectBuilder,
ExternalSchedulerDiscovery, ExternalSchedulerDiscoveryResult and SchedulingManager (loadExternalScheduler,
runExternalFilters, runExternalFunctions, performLoadBalancing, externalRunBalance).
"""

from __future__ import annotations

import http.client
import logging
import re
import xmlrpc.client
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Protocol
from urllib.parse import urlsplit
from xml.parsers.expat import ExpatError

import msgspec
from msgspec.structs import replace

from ovirt_placement.model import Host
from ovirt_simulator.core.backend import Backend
from ovirt_simulator.core.entities import (
    SYSTEM,
    Cluster,
    Job,
    PolicyUnit,
    SchedulingPolicy,
    UnitType,
    stable_id,
)
from ovirt_simulator.core.events import EventCode, EventType
from ovirt_simulator.core.rejections import Rejected
from ovirt_simulator.core.state import State
from ovirt_simulator.scheduler.filters import Request
from ovirt_simulator.scheduler.weights import Record

_REASON = "Load balancing"

_log = logging.getLogger(__name__)

#: The engine's ExternalSchedulerConnectionTimeout and ExternalSchedulerResponseTimeout.
CONNECT_SECONDS = 0.1
REPLY_SECONDS = 120.0


class Unreachable(Exception):
    """The engine's XmlRpcException: no connection, no answer in time, a fault, or no XML-RPC at all."""


class Malformed(Exception):
    """An answer that the engine fails on outside of what it catches: the whole command fails."""


class Answer(msgspec.Struct, frozen=True):
    """What came of a call, and what the answer says of plugins that failed (None: of the proxy itself)."""

    result: Any
    complaints: tuple[tuple[str | None, str], ...] = ()


class ExternalScheduler:
    """One proxy. Every method raises `Unreachable` as the engine's client would."""

    def __init__(
        self, url: str, *, connect_seconds: float = CONNECT_SECONDS, reply_seconds: float = REPLY_SECONDS
    ) -> None:
        self.url = url if urlsplit(url).path else f"{url}/"
        self._connect_seconds = connect_seconds
        self._reply_seconds = reply_seconds

    def discover(self) -> Any:
        """Ask which units there are; the caller, who knows units, judges the answer."""
        return self._call("discover")

    def run_filters(
        self, names: Sequence[str], hosts: Sequence[str], vm: str, properties: Mapping[str, str]
    ) -> Answer:
        """Ask which hosts remain; an answer without a list leaves none."""
        reply = _checked(self._call("runFilters", list(names), list(hosts), vm, dict(properties)))
        result = reply.get("result")
        return Answer(tuple(result) if isinstance(result, list) else (), _complaints(reply))

    def run_cost_functions(
        self, factors: Sequence[tuple[str, int]], hosts: Sequence[str], vm: str, properties: Mapping[str, str]
    ) -> Answer:
        """Ask for weights, `Record`s under the names of their units; None stands for one without a name.

        Triples carry their unit's name, pairs are summed up and final.
        """
        units = [list(entry) for entry in factors]
        reply = _checked(self._call("runCostFunctions", units, list(hosts), vm, dict(properties)))
        records = tuple(
            Record(entry[2] if len(entry) > 2 else None, entry[0], _int32(entry[1]))
            for entry in reply.get("result") or ()
        )
        return Answer(records, _complaints(reply))

    def run_load_balancing(self, name: str, hosts: Sequence[str], properties: Mapping[str, str]) -> Answer:
        """Ask for a VM to move, with the hosts where it may go; None when there is nothing to do.

        Raises `Malformed` for an empty list: it ends the engine's balancing.
        """
        reply = _checked(self._call("runLoadBalancing", name, list(hosts), dict(properties)))
        result = reply.get("result")
        if result is not None and len(result) < 2:
            raise Malformed(f"runLoadBalancing answered {result!r} instead of [vm, [hosts]]")
        move = (result[0], tuple(result[1])) if result and result[0] and result[1] else None
        return Answer(move, _complaints(reply))

    def _call(self, method: str, *arguments: Any) -> Any:
        transport = _Transport(self._connect_seconds, self._reply_seconds)
        proxy = xmlrpc.client.ServerProxy(self.url, transport=transport)
        try:
            return getattr(proxy, method)(*arguments)
        except (OSError, http.client.HTTPException, xmlrpc.client.Error, ExpatError) as error:
            raise Unreachable(f"{self.url}: {error}") from error
        finally:
            transport.close()


class _Long(int):
    """A 64-bit integer of the wire, which the engine cannot cast."""


def _end_long(unmarshaller: xmlrpc.client.Unmarshaller, data: str) -> None:
    unmarshaller.append(_Long(data))
    unmarshaller._value = False


class _Unmarshaller(xmlrpc.client.Unmarshaller):
    """Keeps 64-bit integers apart."""

    dispatch = {**xmlrpc.client.Unmarshaller.dispatch, "i8": _end_long}


class _Transport(xmlrpc.client.Transport):
    """A transport with the engine's two timeouts, which asks once."""

    def __init__(self, connect_seconds: float, reply_seconds: float) -> None:
        super().__init__()
        self._connect_seconds = connect_seconds
        self._reply_seconds = reply_seconds

    def request(self, host: Any, handler: str, request_body: Any, verbose: bool = False) -> Any:
        return self.single_request(host, handler, request_body, verbose)

    def make_connection(self, host: Any) -> http.client.HTTPConnection:
        address = urlsplit(f"http://{host}")
        connection = http.client.HTTPConnection(
            address.hostname or "", address.port, timeout=self._connect_seconds
        )
        connection.connect()
        connection.sock.settimeout(self._reply_seconds)
        self._connection = host, connection
        return connection

    def getparser(self) -> tuple[Any, Any]:
        target = _Unmarshaller()
        return xmlrpc.client.ExpatParser(target), target


def _checked(reply: Any) -> Mapping[str, Any]:
    """Take a reply that is no struct for an empty one; refuse one without the code the engine unboxes."""
    if not isinstance(reply, dict):
        return {}
    if type(reply.get("result_code")) is not int:
        raise Malformed("the reply has no int32 result_code")
    return reply


def _int32(weight: Any) -> int:
    if type(weight) is not int:
        raise Malformed(f"weight {weight!r} is no int32")
    return weight


def _complaints(reply: Mapping[str, Any]) -> tuple[tuple[str | None, str], ...]:
    if not reply.get("result_code"):
        return ()
    by_plugin = reply.get("plugin_errors") or {}
    of_plugins = [(name, str(text)) for name, texts in by_plugin.items() for text in texts]
    return (*of_plugins, *((None, str(text)) for text in reply.get("errors") or ()))


_KINDS = {"filters": UnitType.FILTER, "scores": UnitType.WEIGHT, "balance": UnitType.LOAD_BALANCING}
_PROPERTY = re.compile(r"[a-z_A-Z0-9]+=[^;]+")


class ExternalUnits:
    """Asks the external scheduler, if there is one. Never called with the engine's lock held."""

    def __init__(self, backend: Backend, external: ExternalScheduler | None) -> None:
        self._backend = backend
        self._external = external

    def discover(self) -> None:
        """Learn the units once; those that are not named, or all when the answer is no good, are disabled."""
        if self._external is None:
            return
        try:
            found = _units(self._external.discover())
        except (Unreachable, ValueError):
            found = {}
            self._log(EventCode.FAILED_TO_CONNECT_TO_SCHEDULER_PROXY)
        with self._backend.lock:
            state = self._backend.state
            known = {unit.id: unit for unit in state.units.values() if not unit.internal}
            for unit in (known | found).values():
                state.put(state.units, replace(unit, enabled=unit.id in found))

    def filter(self, request: Request, cluster: Cluster, hosts: tuple[Host, ...]) -> tuple[Host, ...]:
        """Give the hosts that the policy's external filters leave; all of them when nobody answers.

        Raises `Malformed` for an answer that the engine fails on.
        """
        policy = self._policy(cluster)
        names = [
            unit.name
            for entry in sorted(policy.filters, key=lambda entry: entry.position)
            if (unit := self._enabled(entry.unit))
        ]
        external = self._external
        if external is None or not names:
            return hosts
        for vm_id in request.vm_ids:
            if not hosts:
                break
            ids, properties = [host.id for host in hosts], cluster.scheduling_properties
            left = self._asked(external.run_filters, names, ids, vm_id, properties)
            if left is None:
                return hosts
            hosts = tuple(host for host in hosts if host.id in left)
        return hosts

    def weigh(self, request: Request, cluster: Cluster, hosts: Sequence[Host]) -> list[Record]:
        """Give the external weights by unit id, VM for VM; none when nobody answers.

        Weights that name no unit of the policy stand under None. Raises `Malformed` as `filter` does.
        """
        units = {
            unit.name: (entry.unit, entry.factor)
            for entry in self._policy(cluster).weights
            if (unit := self._enabled(entry.unit))
        }
        records: list[Record] = []
        external = self._external
        if external is None or not units:
            return records
        factors = [(name, factor) for name, (_, factor) in units.items()]
        ids, properties = [host.id for host in hosts], cluster.scheduling_properties
        for vm_id in request.vm_ids:
            found = self._asked(external.run_cost_functions, factors, ids, vm_id, properties)
            if found is None:
                return []
            for record in found:
                known = units.get(record.unit) if record.unit is not None else None
                records.append(record._replace(unit=None if known is None else known[0]))
        return records

    def balance(
        self, cluster: Cluster, unit: PolicyUnit, hosts: Sequence[Host]
    ) -> tuple[str, tuple[str, ...]] | None:
        """Ask an external balance for a VM to move and where it may go; None for nothing, or no answer."""
        external = self._external
        if external is None or not unit.enabled:
            return None
        ids, properties = [host.id for host in hosts], cluster.scheduling_properties
        move: tuple[str, tuple[str, ...]] | None = self._asked(
            external.run_load_balancing, unit.name, ids, properties
        )
        return move

    def _policy(self, cluster: Cluster) -> SchedulingPolicy:
        with self._backend.lock:
            return self._backend.state.policies[cluster.policy_id]

    def _enabled(self, unit_id: str) -> PolicyUnit | None:
        with self._backend.lock:
            unit = self._backend.state.units[unit_id]
        return unit if unit.enabled and not unit.internal else None

    def _asked(self, ask: Callable[..., Answer], *arguments: Any) -> Any:
        """Give what the scheduler answers, once its complaints are logged; None when nobody answers."""
        try:
            answer = ask(*arguments)
        except Unreachable:
            self._log(EventCode.FAILED_TO_CONNECT_TO_SCHEDULER_PROXY)
            return None
        for plugin, error in answer.complaints:
            if plugin is None:
                self._log(EventCode.EXTERNAL_SCHEDULER_ERROR, error=error)
            else:
                self._log(EventCode.EXTERNAL_SCHEDULER_PLUGIN_ERROR, plugin=plugin, error=error)
        return answer.result

    def _log(self, code: EventType, **words: str) -> None:
        with self._backend.lock:
            self._backend.audit_log.log(code, SYSTEM, words=words)


def _units(answer: Any) -> dict[str, PolicyUnit]:
    """Read the answer of `discover`; raises ValueError for one that fails the whole discovery.

    A unit whose properties have errors is left out alone.
    """
    if not isinstance(answer, dict) or not set(answer) <= set(_KINDS):
        raise ValueError("discover answers filters, scores and balance")
    found = {}
    for key, units in answer.items():
        if not isinstance(units, dict):
            raise ValueError(f"{key} is no map")
        for name, description in units.items():
            unit = _unit(_KINDS[key], name, description)
            if unit is not None:
                found[unit.id] = unit
    return found


def _unit(kind: UnitType, name: str, description: Any) -> PolicyUnit | None:
    if not isinstance(description, list) or None in description:
        raise ValueError(f"unit {name} has no [description, properties]")
    text, syntax = ([str(part) for part in description] + ["", ""])[:2]
    properties = [part.strip() for part in syntax.split(";") if part.strip()]
    if not all(_PROPERTY.fullmatch(part) for part in properties):
        return None
    return PolicyUnit(
        id=stable_id(kind, name),
        name=name,
        type=kind,
        internal=False,
        description=text,
        properties=dict(part.split("=", 1) for part in properties),
    )


class MigrateBySystem(Protocol):
    """Begins a migration that the engine itself wants. Raises `Rejected`."""

    def __call__(self, vm_id: str, reason: str, *, hosts: Collection[str] = ()) -> Job: ...


def is_migrating(state: State, host: Host) -> bool:
    """Return whether a VM is on its way from or to the host."""
    there = (*state.vms_on(host.id), *state.incoming(host.id))
    return any(vm.status == "migrating" for vm in there)


class LoadBalancing:
    """Asks, and migrates what it is ordered to."""

    def __init__(self, backend: Backend, external: ExternalUnits, migrate: MigrateBySystem) -> None:
        self._backend = backend
        self._external = external
        self._migrate = migrate

    def cycle(self) -> None:
        """Balance every cluster once; a policy without balance, or a malformed answer, ends it for all."""
        with self._backend.lock:
            clusters = tuple(self._backend.state.clusters.values())
        for cluster in clusters:
            try:
                self._balance(cluster)
            except (Malformed, LookupError) as error:
                _log.warning("load balancing ends at cluster %s: %s", cluster.name, error)
                return

    def _balance(self, cluster: Cluster) -> None:
        state = self._backend.state
        with self._backend.lock:
            balance = state.policies[cluster.policy_id].balance
            if balance is None:
                raise LookupError("its policy has no balance")
            unit = state.units[balance]
            hosts = [h for h in state.hosts_of(cluster.id) if h.up and not is_migrating(state, h)]
        if unit.internal or not hosts:
            return
        move = self._external.balance(cluster, unit, hosts)
        if move is None:
            return
        vm_id, targets = move
        try:
            self._migrate(vm_id, _REASON, hosts=targets)
        except Rejected as refusal:
            _log.info("load balancing of %s: %s", vm_id, refusal.detail)
