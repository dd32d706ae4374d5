"""Reads the proxy's record of decisions: one line of JSON each, in a file and those that made way for it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import IO, Any

import msgspec

from ovirt_placement.answers.status.proxy import configuration_of, section_of
from ovirt_placement.config_file import DEFAULT_ENGINE
from ovirt_service import identity
from ovirt_service.errors import UserError

FILTERS, WEIGHTS, BALANCE = "runFilters", "runCostFunctions", "runLoadBalancing"

#: Where the proxy's unit lets it record, where its configuration does not say.
LOG_DIRECTORY = Path("/var/log/ovirt-scheduler-proxy")
#: Whose group may read there.
GROUP = "ovirt-scheduler-proxy"


class NoRecord(UserError):
    """The proxy is not known to record decisions, or the record cannot be read."""


class LoggedDecision(msgspec.Struct, frozen=True):
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
    #: The VM that was asked about; empty of a balance.
    vm: str = ""
    #: By unit: why it dropped hosts, as the unit wrote it.
    reasons: Mapping[str, Any] = {}

    @property
    def refused(self) -> bool:
        """Whether no host was left of those that the engine asked about."""
        return self.method == FILTERS and bool(self.hosts) and len(self.fallen) == len(self.hosts)


def records(engine: str) -> bool:
    """Whether the proxy of an engine is to record. Raises `UserError` if its configuration cannot be read."""
    return (section_of(engine, "decisions") or {}).get("record") is not False


def record_of(engine: str) -> Path:
    """Where the proxy of an engine records its decisions. Raises `NoRecord` if it does not."""
    file = configuration_of(engine)
    section = section_of(engine, "decisions")
    if not records(engine):
        raise NoRecord(f"the proxy records no decisions: record = false in section [decisions] of {file}")
    if section is not None and section.get("file"):
        return Path(section["file"])
    own = "" if engine == DEFAULT_ENGINE else f"-{engine}"
    usual = LOG_DIRECTORY / f"decisions{own}.jsonl"
    if section is None and not _exists(usual):
        raise NoRecord(
            f"this machine has no scheduler proxy of engine {engine}: there is neither {file} nor {usual};"
            " name the record of its proxy with --decisions"
        )
    return usual


def decisions(record: Path, fits: Callable[[bytes], bool] = bool) -> Iterator[LoggedDecision]:
    """The decisions whose line `fits`, the oldest first.

    A line that is none, as a full disk leaves it, is passed over. Raises `NoRecord` if nothing can be read.
    """
    bad = good = 0
    with ExitStack() as opened:
        for lines in reversed(_opened(record, opened)):
            for line in lines:
                # What is being written just now has no end yet.
                if not fits(line) or not line.endswith(b"\n"):
                    continue
                try:
                    decision = msgspec.json.decode(line, type=LoggedDecision)
                except (msgspec.MsgspecError, UnicodeDecodeError):
                    bad += 1
                    continue
                good += 1
                yield decision
    if bad and not good:
        raise NoRecord(f"{record}: is no record of the proxy's decisions")


def about(vm: str, record: Path) -> Iterator[LoggedDecision]:
    """The decisions about a VM, the oldest first; raises as `decisions`."""
    name = msgspec.json.encode(vm)
    marks = b'"vm":' + name, b'"balance":[' + name
    return decisions(record, lambda line: any(mark in line for mark in marks))


def begins(record: Path) -> float | None:
    """When its first decision was made, in seconds since the epoch; None if empty. Raises as `decisions`."""
    oldest = next(decisions(record), None)
    return None if oldest is None else oldest.time


def exists(record: Path) -> bool:
    """Whether there is a record. Raises `NoRecord` if it cannot be read."""
    try:
        with record.open("rb"):
            return True
    except FileNotFoundError:
        return False
    except OSError as error:
        raise NoRecord(_unreadable(record, error)) from None


def _opened(record: Path, opened: ExitStack) -> list[IO[bytes]]:
    """The files, the newest first, each once: one that makes way meanwhile is met again by its new name."""
    found: list[IO[bytes]] = []
    seen = set()
    for number in count():
        file = record.with_name(f"{record.name}.{number}") if number else record
        try:
            lines = opened.enter_context(os.fdopen(identity.opened(file), "rb"))
        except FileNotFoundError:
            if number:
                break
            continue  # it may have made way just now
        except OSError as error:
            raise NoRecord(_unreadable(file, error)) from None
        status = _file_of(lines)
        if status not in seen:
            seen.add(status)
            found.append(lines)
    if not found:
        raise NoRecord(
            f"{record}: there is no such file: the proxy has recorded no decision yet, or is not allowed to"
            " write there (ovirt-placement doctor)"
        )
    return found


def _file_of(lines: IO[bytes]) -> tuple[int, int]:
    """Which file it is, whatever its name."""
    status = os.fstat(lines.fileno())
    return status.st_dev, status.st_ino


def _unreadable(file: Path, error: OSError) -> str:
    if isinstance(error, PermissionError):
        return (
            f"{file}: cannot read the record of decisions: root and the group {GROUP} may read it"
            f" (usermod -aG {GROUP} USER)"
        )
    return f"{file}: cannot read the record of decisions: {error.strerror}"


def _exists(file: Path) -> bool:
    try:
        return file.exists()
    except PermissionError:
        return True  # the directory of its log is there, and closed to us
