"""The external scheduler as the engine's client sees it: XML-RPC calls, and what their answers do.

Source: the engine's ExternalSchedulerBrokerImpl and ExternalSchedulerBrokerObjectBuilder.
"""

from __future__ import annotations

import http.client
import xmlrpc.client
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit
from xml.parsers.expat import ExpatError

import msgspec

from .rank_selector import Record

#: The engine's ExternalSchedulerConnectionTimeout and ExternalSchedulerResponseTimeout.
CONNECT_SECONDS = 0.1
REPLY_SECONDS = 120.0


class Unreachable(Exception):
    """The engine's XmlRpcException: no connection, no answer in time, a fault, or no XML-RPC at all."""


class Malformed(Exception):
    """An answer that the engine fails on outside of what it catches: the whole command fails."""


class Complaint(msgspec.Struct, frozen=True):
    """What an answer says of a plugin that failed (None: of the proxy itself)."""

    plugin: str | None
    error: str


class FilterReply(msgspec.Struct, frozen=True):
    hosts: tuple[str, ...]
    complaints: tuple[Complaint, ...] = ()


class WeightReply(msgspec.Struct, frozen=True):
    """Weights as they came, under the names of their units; None stands for one that came without a name."""

    records: tuple[Record, ...]
    complaints: tuple[Complaint, ...] = ()


class BalanceReply(msgspec.Struct, frozen=True):
    """The VM to move and where it may go; None when there is nothing to do."""

    vm: str | None
    hosts: tuple[str, ...] = ()
    complaints: tuple[Complaint, ...] = ()


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
    ) -> FilterReply:
        """Ask which hosts remain; an answer without a list leaves none."""
        reply = _checked(self._call("runFilters", list(names), list(hosts), vm, dict(properties)))
        result = reply.get("result")
        remaining = tuple(result) if isinstance(result, list) else ()
        return FilterReply(remaining, _complaints(reply))

    def run_cost_functions(
        self,
        factors: Sequence[tuple[str, int]],
        hosts: Sequence[str],
        vm: str,
        properties: Mapping[str, str],
    ) -> WeightReply:
        """Ask for weights: triples carry their unit's name, pairs are summed up and final."""
        units = [list(entry) for entry in factors]
        reply = _checked(self._call("runCostFunctions", units, list(hosts), vm, dict(properties)))
        records = tuple(
            Record(entry[2] if len(entry) > 2 else None, entry[0], _int32(entry[1]))
            for entry in reply.get("result") or ()
        )
        return WeightReply(records, _complaints(reply))

    def run_load_balancing(
        self, name: str, hosts: Sequence[str], properties: Mapping[str, str]
    ) -> BalanceReply:
        """Ask for a VM to move. Raises `Malformed` for an empty list: it ends the engine's balancing."""
        reply = _checked(self._call("runLoadBalancing", name, list(hosts), dict(properties)))
        result = reply.get("result")
        if result is None:
            return BalanceReply(None, (), _complaints(reply))
        if len(result) < 2:
            raise Malformed(f"runLoadBalancing answered {result!r} instead of [vm, [hosts]]")
        return BalanceReply(result[0] or None, tuple(result[1]), _complaints(reply))

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


def _complaints(reply: Mapping[str, Any]) -> tuple[Complaint, ...]:
    if not reply.get("result_code"):
        return ()
    by_plugin = reply.get("plugin_errors") or {}
    of_plugins = [Complaint(name, str(text)) for name, texts in by_plugin.items() for text in texts]
    return (*of_plugins, *(Complaint(None, str(text)) for text in reply.get("errors") or ()))
