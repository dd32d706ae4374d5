"""A policy unit is a client: the inventory service decides, which knows what it has just accepted.

Where none runs on this machine, the unit reads the engine itself and decides by the same rules.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from ovirt_placement import config
from ovirt_placement.inventory.protocol import Decide, Decided, Hangs, Method, NoAnswer, NoService, Services

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
_log = logging.getLogger(__name__)
# The old proxy takes any line on standard error for a failure of the unit, and Python prints there
# what no one handles.
logging.getLogger("ovirt_placement").addHandler(logging.NullHandler())


class Undecided(LookupError):
    """There is no answer. A unit that `refuses` does so loudly; one that `awaits` the VM is asked again."""

    def __init__(self, why: str, *, refuses: bool = False, awaits: bool = False) -> None:
        super().__init__(why)
        self.refuses, self.awaits = refuses, awaits


class Aged(list[Any]):
    """A list for our proxy, which records how old the state was, and why hosts were dropped, as JSON."""

    def __init__(self, items: Iterable[Any], decided: Decided) -> None:
        super().__init__(items)
        self.state_age_seconds, self.reasons = decided.age_seconds, decided.reasons


class AgedMove(tuple[str, list[str]]):
    """The VM that a balance moves, and where it may go, with the age of the state."""

    state_age_seconds: float


def accepted_hosts(unit: str, hosts: Sequence[str], vm: str, properties: Properties) -> list[str]:
    """The hosts that a filter leaves. Raises `Undecided`."""
    decided = _ask("filter", unit, hosts, vm, properties)
    return Aged(decided.hosts, decided)


def ranked_hosts(unit: str, hosts: Sequence[str], vm: str, properties: Properties) -> list[tuple[str, int]]:
    """The ranks that a weight gives to hosts; 0 is best. Raises `Undecided`."""
    decided = _ask("score", unit, hosts, vm, properties)
    return Aged(zip(decided.hosts, decided.ranks, strict=True), decided)


def chosen_move(unit: str, hosts: Sequence[str], properties: Properties) -> tuple[str, list[str]]:
    """What a balance moves; no VM and no hosts where there is nothing to do. Raises `Undecided`."""
    decided = _ask("balance", unit, hosts, "", properties)
    move = AgedMove((decided.vm, decided.hosts))
    move.state_age_seconds = decided.age_seconds
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


def _ask(method: Method, unit: str, hosts: Sequence[str], vm: str, properties: Properties) -> Decided:
    question = Decide(
        method,
        unit,
        list(hosts),
        vm,
        dict(properties or {}),
        by_hand=os.environ.get(_ASKED) == "by hand",
        records=os.environ.get(_RECORDS) == "reasons",
        explains=_log.isEnabledFor(logging.DEBUG),
        asks_again=_stays(),
    )
    directory = _directory()
    try:
        decided = _services.ask(directory, question, _PATIENCE_SECONDS, Decided)
    except (Hangs, NoAnswer):
        raise Undecided(f"the inventory at {directory} does not answer") from None
    except NoService:
        # Loads the rules: where a service runs no unit needs them.
        from ovirt_placement.units.decisions import decide

        decided = decide(question, stays=_stays())
    for level, text in decided.log:
        _log.log(level, "%s", text)
    if decided.failure is not None:
        raise Undecided(decided.failure, refuses=decided.refuses, awaits=decided.awaited)
    return decided


def _stays() -> bool:
    """Whether this process answers more than one call, as a worker of ours does."""
    return os.environ.get(_TAKES) == "returned"


@cache
def _directory() -> Path:
    return config.load().inventory.directory
