"""What the engine asks and what it is answered: checks arguments, and puts the units' outcomes together."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from itertools import compress
from typing import Any

import msgspec

from ovirt_scheduler_proxy import xmlrpc as writing
from ovirt_scheduler_proxy.processes import Cause, Outcome, failed
from ovirt_scheduler_proxy.units import UnitKind
from ovirt_scheduler_proxy.worker.answers import is_vm_id
from ovirt_scheduler_proxy.xmlrpc import INVALID_PARAMETERS, UNKNOWN_METHOD, Fault

#: Cluster policy properties: names and values, both text.
Properties = dict[str, str]

#: Characters of a name or an id, of which the engine's have 36, and of a property's value: calls are logged
#: and recorded with them.
_LONGEST, _LONGEST_VALUE = 1000, 100_000


class Question(msgspec.Struct, frozen=True):
    """What the engine asks: these units about these hosts, for a VM unless it is about balance."""

    method: str
    kind: UnitKind
    units: list[str]
    hosts: list[str]
    vm: str
    properties: Properties


#: Of each method, what its units are, and what its arguments are called.
_METHODS: dict[str, tuple[UnitKind, tuple[str, ...]]] = {
    "runFilters": (UnitKind.FILTER, ("filters", "hosts", "vm", "properties")),
    "runCostFunctions": (UnitKind.SCORE, ("cost_functions", "hosts", "vm", "properties")),
    "runLoadBalancing": (UnitKind.BALANCE, ("balance", "hosts", "properties")),
}


def read_question(method: str, parameters: Sequence[Any]) -> Question:
    """The question that a call of one of the three methods asks.

    Raises `Fault` for an unknown method or arguments that the engine would not send.
    """
    if method not in _METHODS:
        known = ", ".join(["discover", *_METHODS])
        raise Fault(UNKNOWN_METHOD, f"there is no method {method[:80]!r}; there are {known}")
    kind, names = _METHODS[method]
    check_count(method, parameters, names)
    units, hosts, *vm, properties = parameters
    return Question(
        method,
        kind,
        _units(method, kind, units),
        _texts(method, "hosts", hosts),
        _text(method, "vm", vm[0]) if vm else "",
        _properties(method, properties),
    )


def _units(method: str, kind: UnitKind, value: Any) -> list[str]:
    if kind is UnitKind.BALANCE:
        return [_text(method, "balance", value)]
    return _texts(method, "filters", value) if kind is UnitKind.FILTER else _weighted_names(method, value)


def check_count(method: str, parameters: Sequence[Any], names: Sequence[str] = ()) -> None:
    """Raise `Fault` unless there are as many arguments as names of them."""
    if len(parameters) != len(names):
        wanted = f"{method}({', '.join(names)})"
        raise Fault(INVALID_PARAMETERS, f"{wanted} takes {len(names)} arguments, not {len(parameters)}")


def _texts(method: str, name: str, value: Any) -> list[str]:
    """A list of texts, each once, in the order of first mention."""
    if not isinstance(value, list):
        raise _wrong(method, name, "a list of texts", value)
    others = set(map(type, value)) - {str}
    if others:
        first = next(item for item in value if type(item) in others)
        raise Fault(INVALID_PARAMETERS, f"{method}: {name} must be a list of texts, but holds {_kind(first)}")
    if value and max(map(len, value)) > _LONGEST:
        raise _too_long(method, f"one of the {name}", _LONGEST)
    return value if len(set(value)) == len(value) else list(dict.fromkeys(value))


def _text(method: str, name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise _wrong(method, name, "a text", value)
    if len(value) > _LONGEST:
        raise _too_long(method, name, _LONGEST)
    return value


def _properties(method: str, value: Any) -> Properties:
    """The cluster's properties. The old proxy's own test client sends an empty text for none.

    A property without a value is an empty one: the engine saves it so where the parameter's regex allows
    the empty text, and keeps all hosts when it gets a fault.
    """
    if value is None or value == "":
        return {}
    if not isinstance(value, dict):
        raise _wrong(method, "properties", "a map of texts", value)
    for name, member in value.items():
        if not isinstance(member, str | None):
            raise _wrong(method, f"property {name[:80]!r}", "a text", member)
        if len(name) > _LONGEST or len(member or "") > _LONGEST_VALUE:
            raise _too_long(method, f"property {name[:80]!r}", _LONGEST_VALUE)
    return {name: member or "" for name, member in value.items()}


def _weighted_names(method: str, value: Any) -> list[str]:
    """The units of `[[name, factor], ...]`. The factor is only checked: the engine applies it itself."""
    if not isinstance(value, list):
        raise _wrong(method, "cost_functions", "a list of pairs of name and factor", value)
    for pair in value:
        if not isinstance(pair, list) or len(pair) != 2:
            raise _wrong(method, "cost_functions", "a list of pairs of name and factor", value)
        _text(method, "the name of a cost function", pair[0])
        if isinstance(pair[1], bool) or not isinstance(pair[1], int):
            raise _wrong(method, f"the factor of {pair[0][:80]!r}", "an integer", pair[1])
    return list(dict.fromkeys(pair[0] for pair in value))


def _too_long(method: str, name: str, most: int) -> Fault:
    return Fault(INVALID_PARAMETERS, f"{method}: {name} has more than {most} characters")


def _wrong(method: str, name: str, wanted: str, value: Any) -> Fault:
    return Fault(INVALID_PARAMETERS, f"{method}: {name} must be {wanted}, not {_kind(value)}")


def _kind(value: Any) -> str:
    names = {type(None): "nothing", bool: "a boolean", int: "an integer", float: "a number", str: "a text"}
    return {**names, list: "a list", dict: "a map"}.get(type(value), f"a {type(value).__name__}")


class Asked(msgspec.Struct, frozen=True):
    """One unit that a call has asked, and what came of it."""

    unit: str
    outcome: Outcome


class Answer(msgspec.Struct, frozen=True):
    """An answer with its story: `result` is for the engine, `plugin_errors` for the administrator."""

    question: Question
    asked: list[Asked]
    result: Any
    plugin_errors: dict[str, list[str]]
    #: How many hosts are left, for the log.
    hosts_out: int

    @property
    def balance(self) -> list[Any] | None:
        """The VM to move and where to, where that was asked."""
        return self.result if self.question.kind is UnitKind.BALANCE else None

    def weights(self) -> dict[str, list[int]]:
        """The weights of each unit that scored, in the order of the hosts."""
        if self.question.kind is not UnitKind.SCORE:
            return {}
        scored = [asked for asked in self.asked if asked.outcome.failure is None]
        return {asked.unit: array("i", asked.outcome.body).tolist() for asked in scored}

    @property
    def result_code(self) -> int:
        """0 when every unit could be heard, else 1."""
        return int(any(asked.outcome.failure is not None for asked in self.asked))


_decode_balance = msgspec.json.Decoder(tuple[str, list[str]]).decode

#: Whether the failure of the unit of this name rejects every host.
Rejects = Callable[[str], bool]


def merge_filters(asked: Sequence[Asked], hosts: list[str], rejects: Rejects) -> list[str]:
    """The hosts that every unit accepts, in the order they were asked.

    A unit that failed accepts all of them; none if it refuses the VM, or if `rejects` says so.
    """
    kept = hosts
    masks = [item.outcome.body for item in asked if item.outcome.failure is None]
    if any(rejects_all(item, rejects) for item in asked):
        return []
    if len(masks) == 1:
        return list(compress(hosts, masks[0]))
    if masks:
        kept = [host for host, votes in zip(hosts, zip(*masks, strict=True), strict=True) if all(votes)]
    return kept


def fallen_hosts(asked: Sequence[Asked], hosts: list[str], rejects: Rejects) -> dict[str, list[str]]:
    """For each host that fell, the units that dropped it."""
    fallen: dict[str, list[str]] = {}
    for item in asked:
        if item.outcome.failure is not None:
            dropped = hosts if rejects_all(item, rejects) else []
        else:
            dropped = [host for host, accepted in zip(hosts, item.outcome.body, strict=True) if not accepted]
        for host in dropped:
            fallen.setdefault(host, []).append(item.unit)
    return fallen


def rejects_all(item: Asked, rejects: Rejects) -> bool:
    """Whether a filter without an answer leaves no host."""
    failure = item.outcome.failure
    return failure is not None and (failure.cause is Cause.REFUSED or rejects(item.unit))


def merge_scores(asked: Sequence[Asked], hosts: list[str]) -> writing.Rendered:
    """`[host, weight, unit]` for every host and every unit that did not fail; weights stay raw."""
    return writing.array(
        writing.weights(hosts, array("i", item.outcome.body), item.unit)
        for item in asked
        if item.outcome.failure is None
    )


def read_balance(outcome: Outcome) -> tuple[str, list[str]]:
    """The VM to move and the hosts that may take it: empty ones where nothing is to be moved."""
    if outcome.failure is not None:
        return "", []
    return _decode_balance(outcome.body)


def checked(outcome: Outcome, hosts: Sequence[str], width: int | None) -> Outcome:
    """The outcome if its body has `width` bytes for each host (None: is a balance answer), else a failure.

    Units cannot cause such bodies by what they answer, only by writing into their worker's connection.
    """
    if outcome.failure is not None:
        return outcome
    fits = _is_balance(outcome, hosts) if width is None else len(outcome.body) == len(hosts) * width
    return outcome if fits else failed(Cause.CRASHED, "confused its worker process", outcome.seconds)


def _is_balance(outcome: Outcome, hosts: Sequence[str]) -> bool:
    """Whether it names a VM that the engine can read and hosts it asked about, or nothing at all."""
    try:
        vm, targets = read_balance(outcome)
    except msgspec.MsgspecError:
        return False
    return (is_vm_id(vm) and set(targets) <= set(hosts)) if targets else not vm
