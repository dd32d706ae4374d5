"""What the engine asks and what it is answered: checks arguments, and puts the units' outcomes together."""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Sequence
from itertools import compress
from typing import Annotated, Any

import msgspec

from ovirt_scheduler_proxy import xmlrpc as writing
from ovirt_scheduler_proxy.processes import Cause, Outcome, failed
from ovirt_scheduler_proxy.units import UnitKind
from ovirt_scheduler_proxy.worker.answers import is_vm_id
from ovirt_scheduler_proxy.xmlrpc import INVALID_PARAMETERS, UNKNOWN_METHOD, Fault
from ovirt_service.decoding import complaint

# A name or an id of the engine's has 36 characters; calls are logged and recorded with them.
_Text = Annotated[str, msgspec.Meta(max_length=1000)]
# A property without a value is an empty one: the engine saves it so where the parameter's regex allows the
# empty text, and keeps all hosts when it gets a fault.
_Properties = dict[_Text, Annotated[str, msgspec.Meta(max_length=100_000)] | None]


class Question(msgspec.Struct, frozen=True):
    """What the engine asks: these units about these hosts, for a VM unless it is about balance."""

    method: str
    kind: UnitKind
    units: list[str]
    hosts: list[str]
    vm: str
    #: Of the cluster's policy.
    properties: dict[str, str]


#: Of each method, what its units are, what its arguments are called, and what they are. The factors of cost
#: functions are only checked: the engine applies them itself.
_METHODS: dict[str, tuple[UnitKind, tuple[str, ...], Any]] = {
    "runFilters": (
        UnitKind.FILTER,
        ("filters", "hosts", "vm", "properties"),
        tuple[list[_Text], list[_Text], _Text, _Properties],
    ),
    "runCostFunctions": (
        UnitKind.SCORE,
        ("cost_functions", "hosts", "vm", "properties"),
        tuple[list[tuple[_Text, int]], list[_Text], _Text, _Properties],
    ),
    "runLoadBalancing": (
        UnitKind.BALANCE,
        ("balance", "hosts", "properties"),
        tuple[_Text, list[_Text], _Properties],
    ),
}
_PLACE = re.compile(r"\[(\d)\]")


def read_question(method: str, parameters: Sequence[Any]) -> Question:
    """The question that a call of one of the three methods asks; units and hosts that stand twice stand once.

    Raises `Fault` for an unknown method or arguments that the engine would not send. The old proxy's own test
    client sends an empty text for no properties.
    """
    if method not in _METHODS:
        known = ", ".join(["discover", *_METHODS])
        raise Fault(UNKNOWN_METHOD, f"there is no method {method[:80]!r}; there are {known}")
    kind, names, types = _METHODS[method]
    check_count(method, parameters, names)
    try:
        units, hosts, *vm, properties = msgspec.convert([*parameters[:-1], parameters[-1] or {}], types)
    except msgspec.ValidationError as error:
        what = _PLACE.sub(lambda found: names[int(found[1])], complaint(error, Question), count=1)
        raise Fault(INVALID_PARAMETERS, f"{method}: {what}") from None
    if kind is UnitKind.BALANCE:
        units = [units]
    elif kind is UnitKind.SCORE:
        units = [unit for unit, _ in units]
    return Question(
        method,
        kind,
        list(dict.fromkeys(units)),
        list(dict.fromkeys(hosts)),
        vm[0] if vm else "",
        {name: value or "" for name, value in properties.items()},
    )


def check_count(method: str, parameters: Sequence[Any], names: Sequence[str] = ()) -> None:
    """Raise `Fault` unless there are as many arguments as names of them."""
    if len(parameters) != len(names):
        wanted = f"{method}({', '.join(names)})"
        raise Fault(INVALID_PARAMETERS, f"{wanted} takes {len(names)} arguments, not {len(parameters)}")


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
