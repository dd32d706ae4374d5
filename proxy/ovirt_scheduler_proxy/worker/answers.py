"""Checks what a unit returned or printed and brings it into the form that leaves the worker."""

from __future__ import annotations

import ast
import json
import math
import numbers
import re
from array import array
from collections.abc import Sequence
from itertools import compress
from typing import Any

#: A sentence about a failure is cut to this many characters.
SENTENCE = 300

# Controls, line separators, invisible marks and those that turn the direction of writing, and halves of
# characters. What joins or spaces characters stays: descriptions in some languages need it.
_UNSAFE = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ud800-\udfff\ufeff\ufff9-\ufffb\ufffe\uffff\U000e0000-\U000e007f"
)
_IN_LINES = re.compile(f"[{_UNSAFE}]")
_IN_LINE = re.compile(f"[\t\n{_UNSAFE}]")


def one_line(text: str, longest: int = SENTENCE) -> str:
    """The text as one line: what is white becomes a space, what cannot be seen is written out."""
    reported = escaped(" ".join(text[: 8 * longest].split()))
    return reported if len(reported) <= longest else f"{reported[: longest - 3]}..."


def escaped(text: str) -> str:
    """The text in one line, with nothing lost: a line break is written out too."""
    return text if text.isprintable() else _IN_LINE.sub(_written_out, text)


def lines(text: str) -> str:
    """The text with its lines and tabs, and all else that cannot be seen written out."""
    return text if text.isprintable() else _IN_LINES.sub(_written_out, text)


def reported(error: BaseException) -> str:
    """An exception in one line: its kind, and its text where it has one."""
    kind, text = one_line(type(error).__name__), text_of(error)
    return f"{kind}: {text}" if text else kind


def text_of(error: BaseException) -> str:
    """The text of an exception in one line; empty where it has none, or none to give."""
    try:
        return one_line(str(error))
    except BaseException:  # whatever a plugin makes of `__str__`
        return ""


def _written_out(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode("ascii")


#: Stands for "no answer was printed", which is not the same as a printed None.
NOTHING = object()

# The plain list of ids that nearly every filter prints: read so, it takes a fraction of a full parse.
_PLAIN_LIST = re.compile(r"\[('[^'\\\n]*'(?:, '[^'\\\n]*')*)?\]")

# What the old proxy's sample balancers print: a VM and a list, not written as a tuple.
_VM_AND_HOSTS = re.compile(r"([^\s\[\](),'\"]+) (\[.*\])")


def find_answer(printed: str, balance: bool) -> tuple[Any, str]:
    """Return the printed answer and the rest of the text.

    The answer is the whole text where that is a Python literal, else the last line that is a list or a tuple.
    Without any, it is `NOTHING`.
    """
    text = printed.strip()
    if not text:
        return NOTHING, ""
    answer = _read(text, balance)
    if answer is not NOTHING:
        return answer, ""
    lines = printed.splitlines()
    for number in range(len(lines) - 1, -1, -1):
        line = lines[number].strip()
        if not line.endswith(("]", ")")):
            continue
        answer = _read(line, balance)
        if isinstance(answer, (list, tuple)):
            return answer, "\n".join(lines[:number] + lines[number + 1 :])
    return NOTHING, printed


def _read(text: str, balance: bool) -> Any:
    if _PLAIN_LIST.fullmatch(text):
        return text[2:-2].split("', '") if len(text) > 2 else []
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        pass
    pair = _VM_AND_HOSTS.fullmatch(text) if balance else None
    if pair is None:
        return NOTHING
    return _read(f"({pair[1]!r}, {pair[2]})", False)


LEAST_WEIGHT = -(2**31)
WORST_WEIGHT = 2**31 - 1

#: A century, in seconds: a greater age says nothing, and must fit into a number.
_LONGEST_AGE = 3.2e9

#: Bytes of reasons: twenty times what 500 hosts with a reason of their own take.
_MOST_REASONS = 1 << 20

_COLLECTIONS = (list, tuple, set, frozenset)

#: How the engine writes the id of a VM. It also reads shorter ones, which name no VM, and ends its load
#: balancing of all clusters at anything else.
_ID = re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")


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
    if not is_vm_id(vm):
        raise InvalidAnswer(f"it named the VM {_shown(vm)}, which is no VM id")
    accepted = filter_answer(targets, hosts)
    named = list(compress(hosts, accepted))
    if not named and targets:
        raise InvalidAnswer(f"it was not asked about any of the hosts that it named: {_shown(targets)}")
    # A VM without a target is no migration: an empty list of targets must not read as "anywhere".
    return json.dumps([vm, named] if named else ["", []], ensure_ascii=False).encode("utf-8", "replace")


def state_age(answer: Any) -> float | None:
    """How old the state was that a unit decided on, in seconds; None where its answer does not say so."""
    age: Any = getattr(answer, "state_age_seconds", None)
    return float(age) if type(age) in (int, float) and 0 <= age <= _LONGEST_AGE else None


def reasons(answer: Any) -> bytes:
    """Why a filter dropped hosts, as JSON; empty where its answer does not say so, or says too much."""
    said: Any = getattr(answer, "reasons", None)
    if isinstance(said, dict):
        try:
            said = json.dumps(said).encode()
        except (TypeError, ValueError, RecursionError):
            return b""
    return said if isinstance(said, bytes) and len(said) <= _MOST_REASONS else b""


def is_vm_id(vm: Any) -> bool:
    """Whether the engine can read this as the id of a VM."""
    return isinstance(vm, str) and _ID.fullmatch(vm) is not None


def _collection(answer: Any, wanted: str) -> Any:
    if not isinstance(answer, _COLLECTIONS):
        raise InvalidAnswer(f"it answered {_shown(answer)} where {wanted} is wanted")
    return answer


def _weight(value: Any, host: str) -> int:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise InvalidAnswer(f"its weight of host {host} is {_shown(value)}, which is no number")
    # Compared as it is: the largest integers and fractions fit into no float.
    real: Any = value
    if real >= WORST_WEIGHT:
        return WORST_WEIGHT
    if real <= LEAST_WEIGHT:
        return LEAST_WEIGHT
    number = float(real)
    if math.isnan(number):
        raise InvalidAnswer(f"its weight of host {host} is not a number (NaN)")
    return round(number)


def _shown(value: Any) -> str:
    """The value as a short piece of one line."""
    try:
        text = repr(value)
    except ValueError:  # an integer with more digits than Python writes
        text = f"a {type(value).__name__}"
    if not text.isprintable():
        text = ascii(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
