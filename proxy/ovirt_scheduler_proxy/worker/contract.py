"""The contract of a plugin: how its units are found and described, and which form their answers have."""

import ast
import importlib
import inspect
import json
import math
import numbers
import os
import re
import sys
from array import array
from collections.abc import Sequence
from enum import Enum
from itertools import compress
from types import ModuleType
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


#: Longer texts about a unit are of no use.
LONGEST_DESCRIPTION = 10_000
LONGEST_PROPERTIES = 50_000

#: This many parameters a unit may have. The engine matches all of them by one regular expression, which runs
#: out of stack at 500 to 1000 of them: that ends its discovery, and all external units stay disabled.
MOST_PROPERTIES = 100


class UnitKind(Enum):
    """What a unit can do; the value is the name that worker processes know it by."""

    FILTER = "filter"
    SCORE = "score"
    BALANCE = "balance"


#: The method of a unit of each kind, and how many arguments it gets from the proxy.
METHODS = {"filter": ("do_filter", 3), "score": ("do_score", 3), "balance": ("do_balance", 2)}


class NameTaken(Exception):
    """A plugin file bears the name of a module that Python itself has loaded already."""


def module_names(folder: str) -> list[str]:
    """The modules that a folder offers, sorted by name: each of its `*.py` files is one."""
    return sorted(
        name[:-3] for name in os.listdir(folder) if name.endswith(".py") and not name.startswith(".")
    )


def load(folder: str, name: str) -> ModuleType:
    """Import a plugin's module from its folder.

    Raises whatever the module raises, and `NameTaken` where another module of that name stands in its way.
    """
    if not name.isidentifier():
        raise NameTaken(f"{name}.py cannot be imported: a plugin's file name must be a Python name")
    standing = sys.modules.get(name)
    file = getattr(standing, "__file__", None) or os.sep
    if standing is not None and not os.path.realpath(file).startswith(os.path.realpath(folder) + os.sep):
        raise NameTaken(f"{name}.py bears the name of a module of Python's own; give the file another name")
    return importlib.import_module(name)


def describe(module: ModuleType) -> list[dict[str, Any]]:
    """The units of a module: name, kinds with their descriptions, properties, origin and problems."""
    return [
        _describe_unit(name, unit)
        for name, unit in inspect.getmembers(module, inspect.isclass)
        if any(hasattr(unit, method) for method, _ in METHODS.values())
    ]


def _describe_unit(name: str, unit: type) -> dict[str, Any]:
    problems: list[str] = []
    properties = getattr(unit, "properties_validation", "")
    if problem := _properties_problem(properties):
        problems.append(problem)
        properties = ""
    kinds = {}
    for kind, (method, arguments) in METHODS.items():
        function = getattr(unit, method, None)
        if function is None:
            continue
        text = inspect.cleandoc(function.__doc__) if isinstance(function.__doc__, str) else ""
        kinds[kind] = lines(text[:LONGEST_DESCRIPTION])
        problems.extend(_method_problems(function, method, arguments))
    if not _accepts_arguments(unit, 0):
        problems.append("its constructor needs arguments, but a unit is made without any")
    return {
        "name": name,
        "kinds": kinds,
        "properties": properties,
        "origin": f"{_file_of(unit)}:{unit.__qualname__}",
        "problems": problems,
    }


def _properties_problem(properties: Any) -> str:
    """Why the engine cannot be reported them at all; empty where it can."""
    if not isinstance(properties, str):
        reported = one_line(repr(properties), 80)
        return f"properties_validation is {reported}, but must be text of the form key=regex;key2=regex2"
    if len(properties) > LONGEST_PROPERTIES:
        return f"properties_validation has more than {LONGEST_PROPERTIES} characters"
    if properties.count(";") > MOST_PROPERTIES:
        return f"properties_validation names more than {MOST_PROPERTIES} parameters, too many for the engine"
    return ""


def _method_problems(function: Any, method: str, arguments: int) -> list[str]:
    if not callable(function):
        return [f"{method} is no method"]
    wanted = "(self, hosts, args)" if arguments == 2 else "(self, hosts, vm, args)"
    return [] if _accepts_arguments(function, arguments + 1) else [f"{method} must take {wanted}"]


def _accepts_arguments(function: Any, count: int) -> bool:
    """Whether it can be called with that many arguments; what is written in C says nothing of its own."""
    try:
        inspect.signature(function).bind(*range(count))
    except TypeError:
        return False
    except ValueError:
        pass
    return True


def _file_of(unit: type) -> str:
    try:
        return os.path.realpath(inspect.getfile(unit))
    except (TypeError, OSError):
        return unit.__module__


#: What a module says of its units must fit into one message to the proxy.
LONGEST_REPORT = 128 << 10


def load_and_report(folder: str, name: str) -> tuple[ModuleType | None, dict[str, Any]]:
    """Import a module and say what it offers, and what went wrong; without the module if that fails."""
    module = None
    report: dict[str, Any] = {"module": name, "units": [], "error": None}
    try:
        module = load(folder, name)
        report["units"] = describe(module)
        if len(json.dumps(report)) > LONGEST_REPORT:
            count, report["units"] = len(report["units"]), []
            report["error"] = f"it describes its {count} units in more than {LONGEST_REPORT >> 10} KiB"
    except BaseException as error:
        report["error"] = reported(error)
    return module if report["error"] is None else None, report


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


CHECKS = {"filter": filter_answer, "score": score_answer, "balance": balance_answer}


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
