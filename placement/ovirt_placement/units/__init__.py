"""A policy unit is a client: the inventory service decides, which knows what it has just accepted.

Where none runs on this machine, the unit reads the engine itself and decides by the same rules. All else here
is of the standard library: the old proxy starts a Python for each call.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from ovirt_placement import config_file
from ovirt_placement.inventory.connection import Hangs, NoAnswer, NoService, Services

if TYPE_CHECKING:
    import logging

#: The cluster's scheduling properties, as the engine hands them to every unit; None for none at all.
Properties = Mapping[str, str] | None
#: Our proxy says here what it takes and records, and who asks.
_TAKES, _RECORDS = "OVIRT_SCHEDULER_PROXY_TAKES", "OVIRT_SCHEDULER_PROXY_RECORDS"
_ASKED = "OVIRT_SCHEDULER_PROXY_ASKED"
#: A proxy ends a unit that takes longer than it allows; no decision takes this long.
_PATIENCE_SECONDS = 30.0

Parameters = ParamSpec("Parameters")
Answer = TypeVar("Answer")

_services = Services()
#: Of Python's `logging`, which is loaded where there is something to log.
_DEBUG = 10


# -- The parameters that the engine offers for our units: `key=regex;key2=regex2`, as it checks them.
_WORD = "[A-Za-z0-9_.-]+"
_WORDS = f"{_WORD}(,{_WORD})*"
_RATIO = r"([1-9][0-9]{0,2}(\.[0-9]{1,4})?|0\.0{0,3}[1-9][0-9]{0,3})"
_SCORE = r"-?[0-9]{1,4}(\.[0-9]{1,4})?"
_MEASURE = "ha_measure=(resources|vms)"
_FAILURES = "ha_failures=[1-9]"

_KEYS = (
    f"placement_initial={_SCORE}",
    f"placement_final={_SCORE}",
    "placement_steps=(100|[1-9][0-9]?)",
    "placement_overhead=[0-9]{1,7}",
    f"placement_memory_ratio={_RATIO}",
    f"placement_cpu_ratio={_RATIO}",
    "placement_reserved_from_vms=(true|false)",
    "placement_load=(cpu|average)",
)
_ADMISSION = (
    _FAILURES,
    f"ha_admission_domain_tags={_WORDS}",
    f"ha_admission_domains={_WORD}:{_WORDS}(/{_WORD}:{_WORDS})*",
)
_BY_UNIT: Mapping[str, Iterable[str]] = {
    "AffinityFilter": ["affinity_missing_unit=(report|reject)"],
    "PlacementKeyFilter": _KEYS,
    "PlacementKeyWeight": [*_KEYS, "placement_tie=(random|engine)"],
    "HaReservationWeight": [
        _MEASURE,
        "ha_weight_scale_down=(100|[1-9][0-9]?)",
        _FAILURES,
        f"ha_failover_hosts={_WORDS}",
    ],
    "HaReservationBalance": [
        _MEASURE,
        "ha_balance_over_utilization=[1-9][0-9]{0,3}",
        "ha_balance_high_utilization=[5-9][0-9]",
        "ha_balance_cpu_over_commit_duration_minutes=[1-9][0-9]*",
        "ha_balance_max_free_memory_for_over_utilized=[1-9][0-9]*",
        "ha_balance_min_free_memory_for_under_utilized=[1-9][0-9]*",
        "ha_balance_vcpu_to_physical_cpu_ratio=[1-9][0-9]*",
    ],
    "HaAdmissionFilter": _ADMISSION,
    "HaAdmissionWeight": _ADMISSION,
}
PARAMETERS = {unit: ";".join(patterns) for unit, patterns in _BY_UNIT.items()}


class Undecided(LookupError):
    """There is no answer. A unit that `refuses` does so loudly; one that `awaits` the VM is asked again."""

    def __init__(self, why: str, *, refuses: bool = False, awaits: bool = False) -> None:
        super().__init__(why)
        self.refuses, self.awaits = refuses, awaits


class Aged(list[Any]):
    """A list for our proxy, which records how old the state was, and why hosts were dropped, as JSON."""

    def __init__(self, items: Iterable[Any], decided: Mapping[str, Any]) -> None:
        super().__init__(items)
        self.state_age_seconds, self.reasons = decided["age_seconds"], decided["reasons"].encode()


class AgedMove(tuple[str, list[str]]):
    """The VM that a balance moves, and where it may go, with the age of the state."""

    state_age_seconds: float


def accepted_hosts(unit: str, hosts: Sequence[str], vm: str, properties: Properties) -> list[str]:
    """The hosts that a filter leaves. Raises `Undecided`."""
    try:
        decided = _ask_inventory("filter", unit, hosts, vm, properties)
    except Undecided as undecided:
        if _stays() or not undecided.refuses:
            raise
        return []  # of a filter that fails the old proxy keeps every host
    return Aged(decided["hosts"], decided)


def ranked_hosts(unit: str, hosts: Sequence[str], vm: str, properties: Properties) -> list[tuple[str, int]]:
    """The ranks that a weight gives to hosts; 0 is best. Raises `Undecided`."""
    decided = _ask_inventory("score", unit, hosts, vm, properties)
    return Aged(zip(decided["hosts"], decided["ranks"], strict=True), decided)


def chosen_move(unit: str, hosts: Sequence[str], properties: Properties) -> tuple[str, list[str]]:
    """What a balance moves; no VM and no hosts where there is nothing to do. Raises `Undecided`."""
    decided = _ask_inventory("balance", unit, hosts, "", properties)
    move = AgedMove((decided["vm"], decided["hosts"]))
    move.state_age_seconds = decided["age_seconds"]
    return move


def answers(decide: Callable[Parameters, Answer]) -> Callable[Parameters, Answer]:
    """Print what a unit's method returns: the old proxy reads that; ours says that it takes the value."""

    @wraps(decide)
    def answer(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Answer:
        result = decide(*args, **kwargs)
        if not _stays():
            print(result)
        return result

    return answer


def _ask_inventory(
    method: str, unit: str, hosts: Sequence[str], vm: str, properties: Properties
) -> dict[str, Any]:
    """Ask as `inventory.publication.Decide` is asked, with the hosts in lines of their own."""
    question = {
        "type": "decide",
        "method": method,
        "unit": unit,
        "vm": vm,
        "parameters": dict(properties or {}),
        "by_hand": os.environ.get(_ASKED) == "by hand",
        "records": os.environ.get(_RECORDS) == "reasons",
        "explains": _stays() and _log().isEnabledFor(_DEBUG),
        "asks_again": _stays(),
    }
    put, directory = "\n".join((json.dumps(question), *hosts)).encode(), _directory()
    try:
        answer: bytes | bytearray = _services.ask(directory, put, _PATIENCE_SECONDS)
    except (Hangs, NoAnswer):
        raise Undecided(f"the inventory at {directory} does not answer") from None
    except NoService:
        _log()
        # Loads the rules: where a service runs no unit needs them.
        from ovirt_placement.units.decisions import decide

        answer = decide(put, stays=_stays())
    rest, _, found = answer.partition(b"\n")
    decided: dict[str, Any] = json.loads(rest)
    decided["hosts"] = found.decode().split("\n") if found else []
    for level, text in decided["log"]:
        _log().log(level, "%s", text)
    if decided["failure"] is not None:
        raise Undecided(decided["failure"], refuses=decided["refuses"], awaits=decided["awaited"])
    return decided


@cache
def _log() -> logging.Logger:
    """The old proxy takes any line on standard error for a failure: Python prints what no one handles."""
    import logging

    logging.getLogger("ovirt_placement").addHandler(logging.NullHandler())
    return logging.getLogger(__name__)


def _stays() -> bool:
    """Whether this process answers more than one call, as a worker of ours does."""
    return os.environ.get(_TAKES) == "returned"


@cache
def _directory() -> Path:
    sections, _ = config_file.read_sections()
    try:
        return config_file.inventory_directory(sections)
    except TypeError:
        from ovirt_placement import config  # says in words what is wrong

        return config.load().inventory.directory
