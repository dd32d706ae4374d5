"""The external scheduler: XML-RPC calls as the engine's client makes them, and the units that they run.

Source: the engine's ExternalSchedulerBrokerImpl, ExternalSchedulerBrokerObjectBuilder,
ExternalSchedulerDiscovery, ExternalSchedulerDiscoveryResult and SchedulingManager (loadExternalScheduler,
runExternalFilters, runExternalFunctions, performLoadBalancing, externalRunBalance).
"""

import http.client
import logging
import re
import xmlrpc.client
from collections.abc import Callable, Collection, Mapping, Sequence
from operator import attrgetter
from typing import Any
from urllib.parse import urlsplit
from xml.parsers.expat import ExpatError

from msgspec.structs import replace

from ovirt_placement.model import Host
from ovirt_simulator.core.backend import Backend, Commands, locked
from ovirt_simulator.core.entities import SYSTEM, Cluster, Job, PolicyUnit, UnitType, stable_id
from ovirt_simulator.core.messages import EventCode, EventType, Rejected
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


class ExternalScheduler:
    """One proxy, called as the engine's client calls it."""

    def __init__(self, url: str, *, reply_seconds: float = REPLY_SECONDS) -> None:
        self.url = url if urlsplit(url).path else f"{url}/"
        self._reply_seconds = reply_seconds

    def ask(self, method: str, *arguments: Any) -> Any:
        """Make a call. Raises `Unreachable` as the engine's client would."""
        transport = _Transport(self._reply_seconds)
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

    def __init__(self, reply_seconds: float) -> None:
        super().__init__()
        self._reply_seconds = reply_seconds

    def request(self, host: Any, handler: str, request_body: Any, verbose: bool = False) -> Any:
        return self.single_request(host, handler, request_body, verbose)

    def make_connection(self, host: Any) -> http.client.HTTPConnection:
        address = urlsplit(f"http://{host}")
        connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=CONNECT_SECONDS)
        connection.connect()
        connection.sock.settimeout(self._reply_seconds)
        self._connection = host, connection
        return connection

    def getparser(self) -> tuple[Any, Any]:
        target = _Unmarshaller()
        return xmlrpc.client.ExpatParser(target), target


_KINDS = {"filters": UnitType.FILTER, "scores": UnitType.WEIGHT, "balance": UnitType.LOAD_BALANCING}
_PROPERTY = re.compile(r"[a-z_A-Z0-9]+=[^;]+")


#: Begins a migration that the engine itself wants: of a VM, for a reason, to one of these hosts, or to any.
#: Raises `Rejected`.
MigrateBySystem = Callable[[str, str, Collection[str]], Job]


def is_migrating(state: State, host: Host) -> bool:
    """Return whether a VM is on its way from or to the host."""
    there = (*state.vms_on(host.id), *state.incoming(host.id))
    return any(vm.status == "migrating" for vm in there)


class ExternalUnits(Commands):
    """Asks the external scheduler, if there is one. Never called with the engine's lock held.

    A single record is read without it: each is immutable.
    """

    def __init__(self, backend: Backend, external: ExternalScheduler | None) -> None:
        super().__init__(backend)
        self._external = external

    def discover(self) -> None:
        """Learn the units once; those that are not named, or all when the answer is no good, are disabled."""
        if self._external is None:
            return
        try:
            found = _units(self._external.ask("discover"))
        except (Unreachable, ValueError):
            found = {}
            self._complain(EventCode.FAILED_TO_CONNECT_TO_SCHEDULER_PROXY)
        with self._backend.lock:
            known = {unit.id: unit for unit in self._state.units.values() if not unit.internal}
            for unit in (known | found).values():
                self._state.put(self._state.units, replace(unit, enabled=unit.id in found))

    def filter(self, request: Request, cluster: Cluster, hosts: tuple[Host, ...]) -> tuple[Host, ...]:
        """Give the hosts that the policy's external filters leave; all of them when no proxy answers.

        An answer without a list leaves none. Raises `Malformed` for an answer that the engine fails on.
        """
        filters = sorted(self._state.policies[cluster.policy_id].filters, key=attrgetter("position"))
        names = [unit.name for entry in filters if (unit := self._enabled(entry.unit))]
        for vm_id in request.vm_ids if names else ():
            if not hosts:
                break
            reply = self._asked(cluster, "runFilters", names, [host.id for host in hosts], vm_id)
            if reply is None:
                return hosts
            left = reply.get("result")
            hosts = tuple(host for host in hosts if isinstance(left, list) and host.id in left)
        return hosts

    def weigh(self, request: Request, cluster: Cluster, hosts: Sequence[Host]) -> list[Record]:
        """Give the external weights by unit id, VM for VM; none when no proxy answers.

        Triples carry their unit's name; pairs, which are summed up and final, stand under None, and so do
        weights of a unit that the policy has not. Raises `Malformed` as `filter` does.
        """
        weights = [
            (unit, entry.factor)
            for entry in self._state.policies[cluster.policy_id].weights
            if (unit := self._enabled(entry.unit))
        ]
        factors, ids = {unit.name: factor for unit, factor in weights}, [host.id for host in hosts]
        units = {unit.name: unit.id for unit, _ in weights}
        records: list[Record] = []
        for vm_id in request.vm_ids if units else ():
            reply = self._asked(cluster, "runCostFunctions", [*map(list, factors.items())], ids, vm_id)
            if reply is None:
                return []
            for host, weight, *named in reply.get("result") or ():
                if type(weight) is not int:
                    raise Malformed(f"weight {weight!r} is no int32")
                records.append(Record(units.get(named[0]) if named else None, host, weight))
        return records

    def balance_all(self, migrate: MigrateBySystem) -> None:
        """Balance every cluster once; a policy without balance, or a malformed answer, ends it for all."""
        for cluster in tuple(self._state.clusters.values()):
            try:
                self._balance(cluster, migrate)
            except (Malformed, LookupError) as error:
                _log.warning("load balancing ends at cluster %s: %s", cluster.name, error)
                return

    def _balance(self, cluster: Cluster, migrate: MigrateBySystem) -> None:
        state = self._state
        with self._backend.lock:
            balance = state.policies[cluster.policy_id].balance
            if balance is None:
                raise LookupError("its policy has no balance")
            unit = state.units[balance]
            hosts = [h for h in state.hosts_of(cluster.id) if h.up and not is_migrating(state, h)]
        if unit.internal or not unit.enabled or not hosts:
            return
        reply = self._asked(cluster, "runLoadBalancing", unit.name, [host.id for host in hosts])
        result = None if reply is None else reply.get("result")
        if result is not None and len(result) < 2:
            raise Malformed(f"runLoadBalancing answered {result!r} instead of [vm, [hosts]]")
        if not result or not result[0] or not result[1]:
            return
        try:
            migrate(result[0], _REASON, tuple(result[1]))
        except Rejected as refusal:
            _log.info("load balancing of %s: %s", result[0], refusal.detail)

    def _enabled(self, unit_id: str) -> PolicyUnit | None:
        unit = self._state.units[unit_id]
        return unit if unit.enabled and not unit.internal else None

    def _asked(self, cluster: Cluster, method: str, *arguments: Any) -> Mapping[str, Any] | None:
        """Give the scheduler's reply, once its complaints are logged; None when no proxy answers."""
        if self._external is None:
            return None
        try:
            reply = self._external.ask(method, *arguments, dict(cluster.scheduling_properties))
        except Unreachable:
            self._complain(EventCode.FAILED_TO_CONNECT_TO_SCHEDULER_PROXY)
            return None
        if not isinstance(reply, dict):
            return {}
        if type(reply.get("result_code")) is not int:
            raise Malformed("the reply has no int32 result_code")
        complaints = reply if reply["result_code"] else {}
        for plugin, texts in (complaints.get("plugin_errors") or {}).items():
            for text in texts:
                self._complain(EventCode.EXTERNAL_SCHEDULER_PLUGIN_ERROR, plugin=plugin, error=str(text))
        for text in complaints.get("errors") or ():
            self._complain(EventCode.EXTERNAL_SCHEDULER_ERROR, error=str(text))
        return reply

    @locked
    def _complain(self, code: EventType, **words: Any) -> None:
        self._log(code, SYSTEM, **words)


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
            if unit := _unit(_KINDS[key], name, description):
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
