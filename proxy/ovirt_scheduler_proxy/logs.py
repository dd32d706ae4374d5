"""Logs and the record of decisions: written in batches and rotated; a disk that fails delays no decision."""

from __future__ import annotations

import contextlib
import glob
import json
import logging
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any, Final

import msgspec

from ovirt_scheduler_proxy.contract import Answer
from ovirt_scheduler_proxy.settings import Decisions, Log
from ovirt_scheduler_proxy.worker.answers import escaped
from ovirt_service.errors import UserError
from ovirt_service.log_lines import LineFormatter

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
            line = self.format(record)
        except Exception:
            self.handleError(record)
            return
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
        while not self._closing.wait(_INTERVAL):
            self._write_batch()
        self._write_batch()

    def _write_batch(self) -> None:
        # No lock is taken: the closer of the handler may hold it while waiting for this thread.
        lines = [self._lines.popleft() for _ in range(len(self._lines))]
        lost, self._lost = self._lost, 0
        if lost:
            reported = f"{lost} messages were lost here: nobody takes them fast enough"
            lines.append(
                self.format(
                    logging.makeLogRecord(
                        {"msg": reported, "levelno": logging.WARNING, "levelname": "WARNING"}
                    )
                )
            )
        if lines:
            self._write("\n".join(lines))
            self._waiting -= sum(map(len, lines[: len(lines) - bool(lost)]))


def set_up(settings: Log) -> BatchedHandler:
    """Send what is logged where the settings say. Raises `UserError` if the file cannot be opened."""
    handler = (
        open_rotated(settings.file, settings.file_mib, settings.files)
        if settings.file
        else BatchedHandler(_write_to_stderr)
    )
    to_journal = not settings.file and _stderr_is_journal()
    plain = LineFormatter("%(asctime)s %(levelname)s %(message)s", escaped)
    handler.setFormatter(_JournalFormatter("%(message)s", escaped) if to_journal else plain)
    logging.basicConfig(level=settings.level.upper(), handlers=[handler], force=True)
    # The formats above use none of these, and finding them out takes half the time of a record.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    return handler


def open_rotated(file: str, mib: int, files: int) -> BatchedHandler:
    """A file that makes way for a new one when it is full. Raises `UserError`."""
    try:
        target = RotatingFileHandler(
            file, maxBytes=mib << 20, backupCount=files, encoding="utf-8", errors="replace"
        )
    except OSError as error:
        raise UserError(f"{file}: cannot be written: {error.strerror}") from error
    return BatchedHandler(lambda text: target.emit(logging.makeLogRecord({"msg": text})))


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


log = logging.getLogger(__name__)

_DAY: Final = 24 * 3600.0
#: A clock that goes otherwise than the machine's own by more than this was set: nothing is deleted by it now.
_JUMP: Final = 3600.0
#: A new file has the rights that the service's umask leaves: under systemd, its group may read.
_MODE: Final = 0o660


class RecordFile:
    """Lines are appended; a full file, or one a day old, becomes FILE.1, that one FILE.2 and so on.

    For one thread at a time. No method raises: an error is reported once, until it is over.
    """

    def __init__(self, path: Path, size: int, files: int, days: float) -> None:
        """`size` in bytes; at most `files` old files are kept, and none for longer than `days`."""
        self._path = path
        self._size = size
        self._files = files
        self._seconds = days * _DAY
        self._descriptor = -1
        self._began = 0.0
        #: Whether a line was written by half.
        self._torn = False
        self._lost = 0
        self._failing = False
        #: What both clocks said when it was last seen what is old: that of the day, and the machine's own.
        self._seen = time.time(), _boot_clock()

    def open(self) -> None:
        """Open it now, so that it is reported at once if that cannot be done."""
        try:
            self._open()
        except OSError as error:
            self._fails(error)

    def write(self, text: str) -> None:
        """Append lines."""
        parts = self._parts(f"{text}\n".encode("utf-8", "replace"))
        for at, part in enumerate(parts):
            try:
                self._make_ready(len(part))
                self._append(part)
            except OSError as error:
                self._lost += sum(rest.count(b"\n") for rest in parts[at:])
                self._fails(error)
                self.close()
                return
        if self._failing:
            log.warning("decisions are recorded again in %s: %d were lost", self._path, self._lost)
            self._failing, self._lost = False, 0

    def close(self) -> None:
        if self._descriptor >= 0:
            with contextlib.suppress(OSError):
                os.close(self._descriptor)
            self._descriptor = -1

    def _parts(self, data: bytes) -> list[bytes]:
        """Many lines that came at once, one by one where they would carry a file far beyond its size."""
        return [data] if len(data) <= self._size // 8 else data.splitlines(keepends=True)

    def _fails(self, error: OSError) -> None:
        if not self._failing:
            log.warning("decisions are not recorded: %s: %s", self._path, error.strerror)
        self._failing = True

    def _open(self) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        self._descriptor = os.open(self._path, flags, _MODE)
        size = os.fstat(self._descriptor).st_size
        self._began = _time_of(os.pread(self._descriptor, 64, 0)) if size else time.time()
        # A process that died may have left half a line.
        self._torn = size > 0 and os.pread(self._descriptor, 1, size - 1) != b"\n"

    def _make_ready(self, more: int) -> None:
        """Have a file open that has room, and is the one that bears the name."""
        if self._descriptor >= 0 and not self._bears_name():
            self.close()
        if self._descriptor < 0:
            self._open()
        size = os.fstat(self._descriptor).st_size
        if size and (size + more > self._size or not -_DAY < time.time() - self._began < _DAY):
            self._rotate()
        if _boot_clock() - self._seen[1] > _JUMP:
            self._expire()

    def _bears_name(self) -> bool:
        """Whether it still has its name: it may have been moved or deleted."""
        try:
            return os.path.samestat(os.fstat(self._descriptor), os.stat(self._path))
        except FileNotFoundError:
            return False

    def _append(self, data: bytes) -> None:
        left = memoryview(b"\n" + data if self._torn else data)
        while left:
            written = os.write(self._descriptor, left)
            left = left[written:]
            self._torn = bool(left)

    def _rotate(self) -> None:
        self.close()
        last = self._numbered(self._files)
        if self._files:
            last.unlink(missing_ok=True)
            for number in range(self._files, 0, -1):
                older = self._numbered(number - 1)
                if older.exists():
                    older.rename(self._numbered(number))
        else:
            self._path.unlink(missing_ok=True)
        self._open()
        self._expire()

    def _expire(self) -> None:
        """Delete what was last written to longer ago than is kept, unless the clock was set meanwhile."""
        wall, machine = time.time(), _boot_clock()
        went = wall - self._seen[0], machine - self._seen[1]
        self._seen = wall, machine
        if abs(went[0] - went[1]) > _JUMP:
            return
        for file in self._path.parent.glob(f"{glob.escape(self._path.name)}.*"):
            number = file.suffix[1:]
            with contextlib.suppress(FileNotFoundError):
                if number.isdecimal() and (
                    int(number) > self._files or wall - file.stat().st_mtime > self._seconds
                ):
                    file.unlink()

    def _numbered(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}") if number else self._path


def _time_of(head: bytes) -> float:
    """When the line was written that begins so; now, where it does not say."""
    written, _, _ = head.partition(b",")
    try:
        return float(json.loads(written + b"}")["time"])
    except (ValueError, KeyError, TypeError):
        return time.time()


def _boot_clock() -> float:
    """Seconds since the machine was booted: a clock that is never set."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class DecisionLog:
    """A rotated JSON-lines file; one that cannot be written costs no decision."""

    def __init__(self, file: Path, settings: Decisions) -> None:
        self._file = RecordFile(file, settings.file_mib << 20, settings.files, settings.days)
        self._file.open()
        self._handler = BatchedHandler(self._file.write)
        self._handler.setFormatter(logging.Formatter("%(message)s"))

    def record(self, request_id: str, answer: Answer, seconds: float, fallen: dict[str, list[str]]) -> None:
        question = answer.question
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
                "balance": answer.balance,
                "failures": {
                    asked.unit: asked.outcome.failure.cause.value
                    for asked in answer.asked
                    if asked.outcome.failure is not None
                },
                "failure_sentences": {
                    asked.unit: asked.outcome.failure.sentence
                    for asked in answer.asked
                    if asked.outcome.failure is not None
                },
                "seconds": round(seconds, 6),
                "unit_seconds": {asked.unit: round(asked.outcome.seconds, 6) for asked in answer.asked},
                "state_age_seconds": {
                    asked.unit: round(asked.outcome.state_age_seconds, 3)
                    for asked in answer.asked
                    if asked.outcome.state_age_seconds is not None
                },
            }
        )
        self._handler.handle(logging.makeLogRecord({"msg": line.decode(), "levelno": logging.INFO}))

    def close(self) -> None:
        self._handler.close()
        self._file.close()


def _reasons(answer: Answer) -> dict[str, Any]:
    """By unit, why it dropped hosts, in its own words; what is no JSON is left out."""
    found: dict[str, Any] = {}
    for asked in answer.asked:
        if asked.outcome.reasons:
            try:
                # Decoded, so that whatever a plugin wrote is one line of the record.
                found[asked.unit] = msgspec.json.decode(asked.outcome.reasons)
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                continue
    return found
