"""What the engine's API has, read off the SDK's service classes: addresses, methods, parameters."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from ovirtsdk4 import services

_VERBS = {"_internal_get": "GET", "_internal_add": "POST", "_internal_action": "POST"} | {
    "_internal_update": "PUT",
    "_internal_remove": "DELETE",
}


class Method(NamedTuple):
    """A method of the API: `address` has {} for each id."""

    verb: str
    address: str
    name: str
    parameters: frozenset[str]
    #: Of actions, what may stand in their bodies.
    elements: frozenset[str]


@cache
def methods() -> tuple[Method, ...]:
    """Give every method at every address below the system service."""
    return tuple(method for service, address in _services() for method in _methods_of(service, address))


def _services() -> Iterator[tuple[type, str]]:
    waiting: list[tuple[type, str, tuple[type, ...]]] = [(services.SystemService, "", ())]
    while waiting:
        service, address, above = waiting.pop()
        if service in above:
            continue
        yield service, address
        for name, function in inspect.getmembers(service, inspect.isfunction):
            if name.endswith("_service"):
                found = re.search(
                    r"return (\w+)\(self\._connection, '%s/(\S+)' % ", inspect.getsource(function)
                )
                assert found is not None, function
                below = f"{address}/{found[2].replace('%s', '{}')}"
                waiting.append((getattr(services, found[1]), below, (*above, service)))


def _methods_of(service: type, address: str) -> Iterator[Method]:
    for name, function in vars(service).items():
        if not inspect.isfunction(function) or name.startswith("_") or name.endswith("service"):
            continue
        source = inspect.getsource(function)
        called = re.search(r"self\.(_internal_\w+)\(", source)
        assert called is not None, function
        parameters = frozenset(re.findall(r"query\['(\w+)'\] =", source))
        action = re.search(r"_internal_action\(action, '(\w+)'", source)
        elements = re.search(r"types\.Action\((.*?)\n        \)", source, re.DOTALL)
        yield Method(
            _VERBS[called[1]],
            f"{address}/{action[1]}" if action else address,
            name,
            parameters,
            frozenset(re.findall(r"(\w+?)_?=", elements[1])) if elements else frozenset(),
        )
