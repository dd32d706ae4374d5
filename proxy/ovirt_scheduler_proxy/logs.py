"""Logs, the record of decisions, and metrics: written in batches; a disk that fails delays no decision."""

import contextlib
import glob
import logging
import os
import stat
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec
from prometheus_client import generate_latest

from ovirt_scheduler_proxy.processes import Cause
from ovirt_scheduler_proxy.scheduler import Answer, Scheduler
from ovirt_scheduler_proxy.settings import Decisions, Log
from ovirt_scheduler_proxy.worker.contract import UnitKind, escaped
from ovirt_service.log import LineFormatter
from ovirt_service.metrics import Instruments

log = logging.getLogger(__name__)

#: Seconds between two batches.
_INTERVAL = 0.1

#: Characters that may wait to be written; and the seconds that the last ones may take, once we are to end.
_MOST_WAITING = 4 << 20
_LAST_SECONDS = 1.0

# syslog's severities, which the journal reads from the start of a line.
_SEVERITIES = {logging.DEBUG: 7, logging.INFO: 6, logging.WARNING: 4, logging.ERROR: 3, logging.CRITICAL: 2}


class _JournalFormatter(LineFormatter):
    """The journal adds the time itself and takes every line for a message of its own."""

    def format(self, record: logging.LogRecord) -> str:
        severity = _SEVERITIES.get(record.levelno, 6)
        return "\n".join(f"<{severity}>{line}" for line in super().format(record).split("\n"))


class BatchedHandler(logging.Handler):
    """Hands lines on in batches, from a thread: a slow disk or reader delays neither a call nor the end."""

    def __init__(self, write: Callable[[str], None]) -> None:
        super().__init__()
        self._write = write
        self._lines: deque[str] = deque()
        self._waiting = 0
        self._lost = 0
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="log", daemon=True)
        self._thread.start()

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self.add(self.format(record))
        except Exception:
            self.handleError(record)

    def add(self, line: str) -> None:
        """Have a line written; too many that wait are counted instead."""
        if self._waiting + len(line) > _MOST_WAITING:
            self._lost += 1
        else:
            self._waiting += len(line)
            self._lines.append(line)

    def close(self) -> None:
        """Write what is left, for as long as that goes on quickly."""
        if not self._closing.is_set():
            self._closing.set()
            self._thread.join(_LAST_SECONDS)
        super().close()

    def _run(self) -> None:
        """Write batches; no lock is taken, as the closer may hold it while waiting for this thread."""
        closing = False
        while not closing:
            closing = self._closing.wait(_INTERVAL)
            lines = [self._lines.popleft() for _ in range(len(self._lines))]
            lost, self._lost = self._lost, 0
            size = sum(map(len, lines))
            if lost:
                warning = {"levelno": logging.WARNING, "levelname": "WARNING"}
                reported = f"{lost} messages were lost here: they come faster than the log takes them"
                lines.append(self.format(logging.makeLogRecord({"msg": reported, **warning})))
            if lines:
                self._write("\n".join(lines))
                self._waiting -= size


def set_up(settings: Log) -> BatchedHandler:
    """Send what is logged to stderr, in the form that the journal reads if that is what it is."""
    handler = BatchedHandler(_write_to_stderr)
    plain = LineFormatter("%(asctime)s %(levelname)s %(message)s", escaped)
    handler.setFormatter(_JournalFormatter("%(message)s", escaped) if _stderr_is_journal() else plain)
    logging.basicConfig(level=settings.level.upper(), handlers=[handler], force=True)
    # The formats above use none of these, and finding them out takes half the time of a record.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    return handler


def _write_to_stderr(text: str) -> None:
    """Past Python's own stream, whose lock would keep the process from ending while stderr is not read."""
    left = memoryview(f"{text}\n".encode("utf-8", "backslashreplace"))
    with contextlib.suppress(OSError):  # there is no other place to report an error to
        while left:
            left = left[os.write(2, left) :]


def _stderr_is_journal() -> bool:
    """Whether systemd has connected stderr to the journal: it says so by device and inode."""
    stream = os.environ.get("JOURNAL_STREAM", "")
    try:
        status = os.fstat(sys.stderr.fileno())
    except (OSError, ValueError):
        return False
    return stream == f"{status.st_dev}:{status.st_ino}"


_DAY: Final = 24 * 3600
#: A new file has the rights that the service's umask leaves of these: under systemd, its group may read.
_MODE: Final = 0o660


class RecordFile:
    """Lines are appended; a full file, or one of another day, becomes FILE.1, that one FILE.2 and so on.

    It is opened for each line, and so made again where it was deleted, or moved away by another process. No
    method raises: an error is reported once, until it is over.
    """

    def __init__(self, path: Path, size: int, files: int, days: float) -> None:
        """`size` in bytes; at most `files` old files are kept, and none for longer than `days`."""
        self._path, self._size, self._files, self._seconds = path, size, files, days * _DAY
        self._lost = 0
        self._failed = False
        self._append(b"")  # so that it is reported at once if that cannot be done

    def write(self, text: str) -> None:
        """Append lines."""
        for line in text.split("\n"):
            self._append(f"{line}\n".encode("utf-8", "replace"))

    def _append(self, line: bytes) -> None:
        try:
            if self._has_no_room(len(line)):
                self._rotate()
            # Half a line, of a process that died, gets an end.
            with open(self._path, "ab", opener=_opened) as file:
                size = os.fstat(file.fileno()).st_size
                whole = not line or not size or os.pread(file.fileno(), 1, size - 1) == b"\n"
                file.write(line if whole else b"\n" + line)
        except OSError as error:
            if not self._failed:
                log.warning("decisions are not recorded: %s: %s", self._path, error.strerror)
            self._failed, self._lost = True, self._lost + bool(line)
            return
        if self._lost:
            log.warning("decisions are recorded again in %s: %d were lost", self._path, self._lost)
        self._failed, self._lost = False, 0

    def _has_no_room(self, more: int) -> bool:
        """Whether the file is full, or was last written to on another day, as UTC has them."""
        try:
            found = os.stat(self._path)
        except FileNotFoundError:
            return False
        is_of_today = found.st_mtime // _DAY == time.time() // _DAY
        full = not is_of_today or found.st_size + more >= self._size
        return stat.S_ISREG(found.st_mode) and bool(found.st_size) and full

    def _rotate(self) -> None:
        """Rename all by one, and delete what was last written to longer ago than is kept.

        That is counted from the last line of the newest file but one as well, so that a clock that is set
        deletes nothing.
        """
        older = [Path(f"{self._path}.{number}") for number in range(1, self._files + 1)]
        for file, to in reversed([*zip((self._path, *older), older, strict=False)]):
            with contextlib.suppress(FileNotFoundError):  # another process may be at it
                file.replace(to)
        with contextlib.suppress(FileNotFoundError):
            newest = older[0].stat().st_mtime
            for file in self._path.parent.glob(f"{glob.escape(self._path.name)}.*"):
                since = min(time.time(), newest) - self._seconds
                if file.suffix[1:].isdecimal() and file.stat().st_mtime < since:
                    file.unlink()


def _opened(path: str, flags: int) -> int:
    """To be read as well, but by no other user."""
    return os.open(path, flags & ~os.O_WRONLY | os.O_RDWR, _MODE)


class DecisionLog(BatchedHandler):
    """A rotated JSON-lines file; one that cannot be written costs no decision."""

    def __init__(self, file: Path, settings: Decisions) -> None:
        super().__init__(RecordFile(file, settings.file_mib << 20, settings.files, settings.days).write)

    def record(self, request_id: str, answer: Answer, seconds: float, fallen: dict[str, list[str]]) -> None:
        question = answer.question
        outcomes = answer.outcomes
        failures = {unit: one.failure for unit, one in outcomes.items() if one.failure is not None}
        ages = {unit: one.state_age_seconds for unit, one in outcomes.items()}
        line = msgspec.json.encode(
            {
                "time": round(time.time(), 3),
                "request": request_id,
                "method": question.method,
                "vm": question.vm,
                "properties": question.properties,
                "hosts": question.hosts,
                "fallen": fallen,
                "reasons": _reasons(answer),
                "weights": answer.weights(),
                "balance": answer.result if question.kind is UnitKind.BALANCE else None,
                "failures": {unit: failure.cause.value for unit, failure in failures.items()},
                "failure_sentences": {unit: failure.sentence for unit, failure in failures.items()},
                "seconds": round(seconds, 6),
                "unit_seconds": {unit: round(one.seconds, 6) for unit, one in outcomes.items()},
                "state_age_seconds": {unit: round(age, 3) for unit, age in ages.items() if age is not None},
            }
        )
        self.add(line.decode())


def _reasons(answer: Answer) -> dict[str, Any]:
    """By unit, why it dropped hosts, in its own words; what is no JSON is left out."""
    found: dict[str, Any] = {}
    for unit, outcome in answer.outcomes.items():
        if outcome.reasons:
            # Decoded, so that whatever a plugin wrote is one line of the record.
            with contextlib.suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                found[unit] = msgspec.json.decode(outcome.reasons)
    return found


_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)

#: Stands for all units that are not loaded, whose names a caller may choose at will.
_MISSING = "(not loaded)"


class Metrics(Instruments):
    """Counts and times."""

    def __init__(self, scheduler: Scheduler) -> None:
        super().__init__("ovirt_scheduler_proxy")
        self._scheduler = scheduler
        self.calls = self.counter("calls", "Calls by method and result", "method", "result")
        self.seconds = self.histogram(
            "call_duration_seconds", "Time to answer a call", "method", buckets=_BUCKETS
        )
        self._unit_seconds = self.histogram(
            "unit_duration_seconds", "Time that a unit itself ran", "method", "unit", buckets=_BUCKETS
        )
        self.discovery = self.gauge(
            "last_discovery_timestamp_seconds",
            "When the engine's last discovery was answered, in Unix time; 0: not since the proxy started",
        )
        self._failures = self.counter(
            "unit_failures", "Failures of units by cause", "method", "unit", "cause"
        )
        self.closed = self.counter(
            "connections_closed",
            "Connections closed since their client sent no whole request in time, or did not read its answer",
        )
        self._workers = self.gauge("workers", "Worker processes", "folder")
        self._restarts = self.counter(
            "worker_restarts", "Workers that ended unasked and were replaced", "folder"
        )
        self._breakers = self.gauge("open_breakers", "Units that are cut off", "kind", "unit")
        self._units = self.gauge("units", "Units loaded")

    def answered(self, answer: Answer, seconds: float) -> None:
        method = answer.question.method
        result = "ok"
        for unit, outcome in answer.outcomes.items():
            if outcome.failure is None:
                self._unit_seconds.labels(method, unit).observe(outcome.seconds)
                continue
            result, cause = "unit_failed", outcome.failure.cause
            named = _MISSING if cause is Cause.MISSING else unit
            self._failures.labels(method, named, cause.value).inc()
        self.calls.labels(method, result).inc()
        self.seconds.labels(method).observe(seconds)

    def page(self) -> bytes:
        """All of them as text, with how workers, breakers and units stand now."""
        plugins = self._scheduler.plugins()
        for folder, pool in plugins.pools.items():
            self._workers.labels(folder).set(len(pool.workers))
            self._restarts.labels(folder).inc(pool.restarts)
            pool.restarts = 0
        self._breakers.clear()
        for key in self._scheduler.breakers.open_keys():
            self._breakers.labels(*key.split(" ", 1)).set(1)
        self._units.set(len(plugins.units))
        return generate_latest(self.registry)
