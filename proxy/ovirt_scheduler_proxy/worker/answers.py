"""Checks what a unit answered and brings it into the form that leaves the worker: pure functions."""

from __future__ import annotations

import json
import math
import numbers
from array import array
from collections.abc import Sequence
from itertools import compress
from typing import Any

LEAST_WEIGHT = -(2**31)
WORST_WEIGHT = 2**31 - 1

_COLLECTIONS = (list, tuple, set, frozenset)


class InvalidAnswer(Exception):
    """A unit's answer has not the form that its method asks for; the text says what was wrong with it."""


def filter_answer(answer: Any, hosts: Sequence[str]) -> bytes:
    """One byte for each host asked about, in order: 1 where the unit accepts it."""
    for host in _collection(answer, "a list of host ids"):
        if not isinstance(host, str):
            raise InvalidAnswer(f"its list of hosts holds {_shown(host)}, which is no host id")
    return bytes(map(frozenset(answer).__contains__, hosts))


def score_answer(answer: Any, hosts: Sequence[str]) -> bytes:
    """A weight for each host asked about, in order, as native 32-bit integers.

    A host that is not mentioned gets the worst weight of this answer: to the engine a missing one would
    count as the best. A host mentioned twice gets the worse of its weights.
    """
    weights: dict[str, int] = {}
    for pair in _collection(answer, "a list of pairs of host id and weight"):
        if not isinstance(pair, (list, tuple)) or len(pair) != 2:
            raise InvalidAnswer(
                f"its list of weights holds {_shown(pair)}, which is no pair of host id and weight"
            )
        host, value = pair
        if not isinstance(host, str):
            raise InvalidAnswer(f"its list of weights holds the host {_shown(host)}, which is no host id")
        plain = type(value) is int and LEAST_WEIGHT <= value <= WORST_WEIGHT
        weight = value if plain else _weight(value, host)
        if weight >= weights.get(host, LEAST_WEIGHT):
            weights[host] = weight
    asked = [weights[host] for host in hosts if host in weights]
    worst = max(asked, default=0)
    return array("i", [weights.get(host, worst) for host in hosts]).tobytes()


def balance_answer(answer: Any, hosts: Sequence[str]) -> bytes:
    """The VM to move and where it may go, as a JSON list; `["", []]` where nothing is to be done."""
    if answer is None:
        return b'["", []]'
    if not isinstance(answer, (list, tuple)) or len(answer) != 2:
        raise InvalidAnswer(f"it answered {_shown(answer)} where a VM id and a list of host ids are wanted")
    vm, targets = answer
    if vm is None or vm == "":
        return b'["", []]'
    if not isinstance(vm, str):
        raise InvalidAnswer(f"it named the VM {_shown(vm)}, which is no VM id")
    accepted = filter_answer(targets, hosts)
    named = list(compress(hosts, accepted))
    # A VM without a target is no migration: an empty list of targets must not read as "anywhere".
    return json.dumps([vm, named] if named else ["", []], ensure_ascii=False).encode("utf-8", "replace")


def _collection(answer: Any, wanted: str) -> Any:
    if not isinstance(answer, _COLLECTIONS):
        raise InvalidAnswer(f"it answered {_shown(answer)} where {wanted} is wanted")
    return answer


def _weight(value: Any, host: str) -> int:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise InvalidAnswer(f"its weight of host {host} is {_shown(value)}, which is no number")
    # An integer is compared as it is: the largest ones fit into no float.
    number: float = int(value) if isinstance(value, numbers.Integral) else float(value)
    if math.isnan(number):
        raise InvalidAnswer(f"its weight of host {host} is not a number (NaN)")
    return round(max(LEAST_WEIGHT, min(number, WORST_WEIGHT)))


def _shown(value: Any) -> str:
    """The value as a short piece of one line."""
    text = repr(value)
    if not text.isprintable():
        text = ascii(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
