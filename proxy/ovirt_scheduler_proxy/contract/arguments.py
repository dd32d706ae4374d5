"""Checks the arguments of a call against what the engine sends, before anything is done with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from ..units import UnitKind
from ..xmlrpc.fault import INVALID_PARAMETERS, UNKNOWN_METHOD, Fault

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


def read_question(method: str, parameters: Sequence[Any]) -> Question:
    """The question that a call of one of the three methods asks.

    Raises `Fault` for an unknown method or arguments that the engine would not send.
    """
    read = _METHODS.get(method)
    if read is None:
        known = ", ".join(["discover", *_METHODS])
        raise Fault(UNKNOWN_METHOD, f"there is no method {method[:80]!r}; there are {known}")
    return read(method, parameters)


def take_none(method: str, parameters: Sequence[Any]) -> None:
    _take(method, parameters, ())


def _run_filters(method: str, parameters: Sequence[Any]) -> Question:
    filters, hosts, vm, properties = _take(method, parameters, ("filters", "hosts", "vm", "properties"))
    return Question(
        method,
        UnitKind.FILTER,
        _texts(method, "filters", filters),
        _texts(method, "hosts", hosts),
        _text(method, "vm", vm),
        _properties(method, properties),
    )


def _run_cost_functions(method: str, parameters: Sequence[Any]) -> Question:
    names = ("cost_functions", "hosts", "vm", "properties")
    cost_functions, hosts, vm, properties = _take(method, parameters, names)
    return Question(
        method,
        UnitKind.SCORE,
        _weighted_names(method, cost_functions),
        _texts(method, "hosts", hosts),
        _text(method, "vm", vm),
        _properties(method, properties),
    )


def _run_load_balancing(method: str, parameters: Sequence[Any]) -> Question:
    balance, hosts, properties = _take(method, parameters, ("balance", "hosts", "properties"))
    return Question(
        method,
        UnitKind.BALANCE,
        [_text(method, "balance", balance)],
        _texts(method, "hosts", hosts),
        "",
        _properties(method, properties),
    )


_METHODS: dict[str, Callable[[str, Sequence[Any]], Question]] = {
    "runFilters": _run_filters,
    "runCostFunctions": _run_cost_functions,
    "runLoadBalancing": _run_load_balancing,
}


def _take(method: str, parameters: Sequence[Any], names: Sequence[str]) -> Sequence[Any]:
    if len(parameters) != len(names):
        wanted = f"{method}({', '.join(names)})"
        raise Fault(INVALID_PARAMETERS, f"{wanted} takes {len(names)} arguments, not {len(parameters)}")
    return parameters


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
