"""What the soak asks the proxy, and what it knows of a right answer.

Each call asks units of its own making, whose answers are known beforehand, besides the real ones, whose
answers hang on an engine that changes all the time: of those only the form is known.
"""

from __future__ import annotations

import random
import threading
import time
import uuid
import xmlrpc.client
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast
from zlib import crc32

FILTERS = ("AffinityFilter", "HostAffinityFilter", "PlacementKeyFilter")
WEIGHTS = ("SoftAffinityWeight", "HostAffinityWeight", "HaReservationWeight", "PlacementKeyWeight")
BALANCE = "HaReservationBalance"
CLIENTS = 4

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


@dataclass
class Tally:
    """What all clients have seen since the last window."""

    #: Seconds until each answer.
    times: list[float] = field(default_factory=list)
    #: Answers in which a unit failed.
    failed: int = 0
    #: What was wrong with answers, and why calls were not answered: sentences.
    wrong: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)


class Clients:
    """Threads that call the proxy as the engine does, until this many calls are made."""

    def __init__(self, url: str, hosts: Sequence[str], vms: Sequence[str], calls: int) -> None:
        self._url, self._hosts, self._vms = url, hosts, vms
        self._lock = threading.Lock()
        self._tally = Tally()
        #: How many calls are still to be made.
        self.left = calls
        self._threads = [threading.Thread(target=self._call_all, args=(seed,)) for seed in range(CLIENTS)]
        for thread in self._threads:
            thread.start()

    @property
    def calling(self) -> bool:
        return any(thread.is_alive() for thread in self._threads)

    def take(self) -> Tally:
        with self._lock:
            tally, self._tally = self._tally, Tally()
        return tally

    def stop(self) -> None:
        with self._lock:
            self.left = 0
        for thread in self._threads:
            thread.join()

    def _call_all(self, seed: int) -> None:
        chance = random.Random(seed)
        with xmlrpc.client.ServerProxy(self._url) as proxy:
            while self._is_another_wanted():
                self._call(proxy, chance)

    def _is_another_wanted(self) -> bool:
        with self._lock:
            self.left -= 1
            return self.left >= 0

    def _call(self, proxy: xmlrpc.client.ServerProxy, chance: random.Random) -> None:
        began, heard, lost = time.monotonic(), Heard(failed=False), ""
        try:
            heard = ask(proxy, chance, self._hosts, chance.choice(self._vms))
        except (OSError, xmlrpc.client.Error) as error:
            lost = repr(error)
        with self._lock:
            self._tally.times.append(time.monotonic() - began)
            self._tally.failed += heard.failed
            self._tally.wrong += [heard.wrong] * bool(heard.wrong)
            self._tally.lost += [lost] * bool(lost)
