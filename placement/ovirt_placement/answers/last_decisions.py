"""What the scheduler proxy answered last about a VM, from its record of decisions: one line of JSON each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import Any

import msgspec

from ovirt_placement.config import DEFAULT_ENGINE
from ovirt_service import toml_file
from ovirt_service.errors import UserError

#: Where proxies have their configuration: one an engine.
PROXY_DIRECTORY = Path("/etc/ovirt-scheduler-proxy")

FILTERS, WEIGHTS, BALANCE = "runFilters", "runCostFunctions", "runLoadBalancing"


class Decision(msgspec.Struct, frozen=True):
    """One answer of the proxy."""

    #: Seconds since 1970.
    time: float
    #: The id that the proxy's log knows the call by.
    request: str
    method: str
    hosts: tuple[str, ...]
    #: For each host that fell, the units that dropped it.
    fallen: Mapping[str, tuple[str, ...]]
    #: By unit, in the order of the hosts; lower is better.
    weights: Mapping[str, tuple[int, ...]]
    #: The VM to move, and where to.
    balance: tuple[str, tuple[str, ...]] | None
    #: What units that failed, or refused the VM, had to say.
    failure_sentences: Mapping[str, str]
    seconds: float
    #: By unit: how old the state was that it decided on, in seconds, where it says so.
    state_age_seconds: Mapping[str, float] = {}

    @property
    def oldest_state_seconds(self) -> float | None:
        """The age of the oldest state that a unit decided on; None if no unit said so."""
        return max(self.state_age_seconds.values(), default=None)


def record_of(engine: str) -> Path:
    """Where the proxy of an engine records its decisions. Raises `UserError` if it does not."""
    name = "ovirt-scheduler-proxy" if engine == DEFAULT_ENGINE else engine
    file = PROXY_DIRECTORY / f"{name}.toml"
    section: Any = toml_file.read(file).get("decisions") if file.exists() else None
    recorded = section.get("file") if isinstance(section, dict) else None
    if not recorded:
        raise UserError(
            f"the proxy records no decisions: set file in section [decisions] of {file}"
            " (to /var/log/ovirt-scheduler-proxy/decisions.jsonl, say) and restart it, or name its record"
            " with --decisions"
        )
    return Path(recorded)


def last_about(vm: str, record: Path) -> tuple[Decision, ...]:
    """The last answer of each method about a VM, the oldest first; raises `UserError`.

    Weights that are older than the last filters are of another decision, and left out.
    """
    found: dict[str, Decision] = {}
    for file in _files(record):
        older = {method: each for method, each in _last_in(file, vm).items() if method not in found}
        found = older | found
        if len(found) == len((FILTERS, WEIGHTS, BALANCE)):
            break
    methods = list(found)
    if FILTERS in found and WEIGHTS in methods[: methods.index(FILTERS)]:
        del found[WEIGHTS]
    return tuple(found.values())


def _files(record: Path) -> Iterator[Path]:
    """The record and those that made way for it, the newest first."""
    yield record
    for number in count(1):
        file = record.with_name(f"{record.name}.{number}")
        if not file.exists():
            return
        yield file


def _last_in(file: Path, vm: str) -> dict[str, Decision]:
    """The last decision of each method about a VM in one file, in the order of the file."""
    name = msgspec.json.encode(vm)
    marks = b'"vm":' + name, b'"balance":[' + name
    found: dict[str, Decision] = {}
    try:
        with file.open("rb") as lines:
            for line in lines:
                # What is being written just now has no end yet.
                if any(mark in line for mark in marks) and line.endswith(b"\n"):
                    decision = msgspec.json.decode(line, type=Decision)
                    found.pop(decision.method, None)
                    found[decision.method] = decision
    except OSError as error:
        raise UserError(f"{file}: cannot read the record of decisions: {error.strerror}") from None
    except msgspec.MsgspecError as error:
        raise UserError(f"{file}: is no record of the proxy's decisions: {error}") from None
    return found
