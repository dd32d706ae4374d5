"""What the soak asks the proxy, and what it knows of a right answer.

Each call asks units of its own making, whose answers are known beforehand, besides the real ones, whose
answers hang on an engine that changes all the time: of those only the form is known.
"""

from __future__ import annotations

import random
import uuid
import xmlrpc.client
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast
from zlib import crc32

FILTERS = ("AffinityFilter", "HostAffinityFilter", "PlacementKeyFilter")
WEIGHTS = ("SoftAffinityWeight", "HostAffinityWeight", "HaReservationWeight", "PlacementKeyWeight")
BALANCE = "HaReservationBalance"

#: A plugin: its answers hang on nothing but what it is asked.
KNOWN_UNITS = """
import uuid
import zlib

class KnownFilter:
    def do_filter(self, hosts, vm, args):
        return [host for host in hosts if zlib.crc32((host + vm).encode()) % 4]

class KnownWeight:
    def do_score(self, hosts, vm, args):
        return [(host, zlib.crc32((vm + host).encode()) % 1000) for host in hosts]

class KnownBalance:
    def do_balance(self, hosts, args):
        return str(uuid.UUID(int=zlib.crc32("".join(hosts).encode()))), hosts[:2]
"""

_PROPERTIES = {"HighUtilization": "80"}


@dataclass(frozen=True)
class Heard:
    """One answer: whether a unit failed, and what is wrong with it, if anything."""

    failed: bool
    wrong: str = ""


def ask(proxy: xmlrpc.client.ServerProxy, chance: random.Random, hosts: Sequence[str], vm: str) -> Heard:
    """Make a call as chance has it. Raises OSError and `xmlrpc.client.Error` where there is no answer."""
    asked = chance.sample(hosts, chance.randint(1, len(hosts)))
    call = chance.choices((_ask_filters, _ask_weights, _ask_balance), (5, 4, 1))[0]
    return call(proxy, chance, asked, vm)


def _ask_filters(proxy: xmlrpc.client.ServerProxy, chance: random.Random, hosts: list[str], vm: str) -> Heard:
    units = ["KnownFilter", *chance.sample(FILTERS, chance.randint(0, 2))]
    failed, kept = _reported(proxy.runFilters(units, hosts, vm, _PROPERTIES))
    allowed = [host for host in hosts if crc32((host + vm).encode()) % 4]
    right = kept == (allowed if len(units) == 1 else [host for host in allowed if host in kept])
    return Heard(failed, "" if right else f"{units} kept {kept} of {hosts} for {vm}")


def _ask_weights(proxy: xmlrpc.client.ServerProxy, chance: random.Random, hosts: list[str], vm: str) -> Heard:
    units = ["KnownWeight", *chance.sample(WEIGHTS, chance.randint(0, 2))]
    failed, weights = _reported(proxy.runCostFunctions([[unit, 1] for unit in units], hosts, vm, _PROPERTIES))
    found: dict[str, list[list[Any]]] = {}
    for host, weight, unit in weights:
        found.setdefault(unit, []).append([host, weight])
    known = found.pop("KnownWeight", [])
    right = known == [[host, crc32((vm + host).encode()) % 1000] for host in hosts]
    right &= all([host for host, _ in each] == hosts for each in found.values())
    right &= found.keys() < set(units[1:]) if failed else found.keys() == set(units[1:])
    return Heard(failed, "" if right else f"{units} weighed {weights} for {vm} on {hosts}")


def _ask_balance(proxy: xmlrpc.client.ServerProxy, chance: random.Random, hosts: list[str], _: str) -> Heard:
    unit = chance.choice(("KnownBalance", BALANCE))
    failed, (vm, targets) = _reported(proxy.runLoadBalancing(unit, hosts, _PROPERTIES))
    if unit == BALANCE:
        right = set(targets) <= set(hosts) and bool(vm) == bool(targets) and not (failed and vm)
    else:
        named = str(uuid.UUID(int=crc32("".join(hosts).encode())))
        right = not failed and [vm, targets] == [named, hosts[:2]]
    return Heard(failed, "" if right else f"{unit} moves {vm!r} to {targets} of {hosts}")


def _reported(answer: object) -> tuple[bool, Any]:
    reported = cast("dict[str, Any]", answer)
    return bool(reported["result_code"]), reported["result"]
