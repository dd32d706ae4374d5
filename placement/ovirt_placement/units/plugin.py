"""What policy units share: how they answer either proxy, and the snapshot that they decide on."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import ParamSpec, TypeVar

from ovirt_placement import inventory
from ovirt_placement.answers.sentences import host_name, sentence, vm_name
from ovirt_placement.model import Snapshot
from ovirt_placement.rules.verdict import Reason, Verdict, Weight
from ovirt_placement.units.readiness import Readiness

Parameters = ParamSpec("Parameters")
Answer = TypeVar("Answer")

#: The cluster's scheduling properties, as the engine hands them to every unit; None for none at all.
Properties = Mapping[str, str] | None

_readiness = Readiness()

_log = logging.getLogger(__name__)
# The old proxy takes any line on standard error for a failure of the unit, and Python prints there
# what no one handles.
logging.getLogger("ovirt_placement").addHandler(logging.NullHandler())


class UnknownVmError(LookupError):
    """The engine asks about a VM that it does not list itself."""

    def __init__(self, vm: str) -> None:
        super().__init__(
            f"the engine lists no VM {vm}: is this the engine that asks, and may our user see it?"
        )


class MissingUnitError(LookupError):
    """A VM has soft rules that the cluster's policy does not weigh, and the policy says to refuse it."""

    #: Tells the proxy that this is the filter's answer: no host, and the reason.
    refuses = True

    def __init__(self, missing: Iterable[Reason], snapshot: Snapshot) -> None:
        super().__init__("; ".join(sentence(reason, snapshot) for reason in missing))


def answers(decide: Callable[Parameters, Answer]) -> Callable[Parameters, Answer]:
    """Print what a unit's method returns, too, since the old proxy reads that.

    Ours says that it takes the value, and is spared half a millisecond of printing with 500 hosts.
    """

    @wraps(decide)
    def answer(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Answer:
        result = decide(*args, **kwargs)
        if os.environ.get("OVIRT_SCHEDULER_PROXY_TAKES") != "returned":
            print(result)
        return result

    return answer


def snapshot_with(vm: str) -> Snapshot:
    """The engine's state, read anew if it does not show the VM yet.

    Raises `UnknownVmError` if it shows none even then, and what `inventory.snapshot` raises.
    """
    for max_age in (None, 0.0):
        snapshot = inventory.snapshot(max_age=max_age)
        if vm in snapshot.vm_by_id:
            _readiness.used(snapshot)
            return snapshot
    raise UnknownVmError(vm)


def whole_number(properties: Properties, name: str, default: int) -> int:
    """A parameter of a unit; the default where the policy does not set it, or sets what is no number."""
    value = (properties or {}).get(name, "")
    return int(value) if value.isascii() and value.isdigit() else default


def log_notes(unit: str, vm: str, notes: Iterable[Reason], snapshot: Snapshot) -> None:
    """Warn of what does not change the answer but should not stay as it is."""
    for note in notes:
        _log.warning("%s: VM %s: %s", unit, vm_name(vm, snapshot), sentence(note, snapshot))


def log_refusals(unit: str, vm: str, verdicts: Iterable[Verdict], snapshot: Snapshot) -> None:
    """At debug level, say of each refused host why."""
    if _log.isEnabledFor(logging.DEBUG):
        for verdict in verdicts:
            if not verdict.accepted:
                _say(unit, vm, verdict, "refused", snapshot)


def explains() -> bool:
    """Whether anybody will read why a host ranks as it does."""
    return _log.isEnabledFor(logging.DEBUG)


def log_ranks(unit: str, vm: str, weights: Iterable[Weight], snapshot: Snapshot) -> None:
    """At debug level, say of each host how it ranks and why."""
    if _log.isEnabledFor(logging.DEBUG):
        for weight in weights:
            _say(unit, vm, weight, f"rank {weight.rank}", snapshot)


def _say(unit: str, vm: str, found: Verdict | Weight, outcome: str, snapshot: Snapshot) -> None:
    why = "; ".join(sentence(reason, snapshot) for reason in found.reasons)
    where = host_name(found.host, snapshot)
    _log.debug("%s: VM %s: host %s %s: %s", unit, vm_name(vm, snapshot), where, outcome, why)
