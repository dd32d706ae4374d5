"""Tries out the modules of a plugin folder in a child process, so that a bad one hurts nothing but itself."""

from __future__ import annotations

import json
import os
import select
import signal
import time
from collections.abc import Iterator
from typing import Any

from . import kernel
from .loading import describe, load
from .text import reported

#: What a module says of its units must fit into one message to the proxy.
LONGEST_REPORT = 128 << 10

#: What is known of one module: its units, what went wrong, and whether it may be shared through a fork.
Report = dict[str, Any]


def probe(folder: str, names: list[str], timeout: float) -> list[Report]:
    """Import every module once, in order, and report on each.

    A module that raises is reported and the child goes on. One that hangs longer than `timeout` seconds or
    ends the process costs that child; a new one goes on behind it. So does one after a module that starts
    threads or opens connections, because the child can no longer know which did.
    """
    reports: list[Report] = []
    while len(reports) < len(names):
        remaining = names[len(reports) :]
        for report in _probe_in_child(folder, remaining, timeout):
            reports.append(report)
            if not report["shareable"]:
                break
    return reports


def _probe_in_child(folder: str, names: list[str], timeout: float) -> Iterator[Report]:
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        _report_all(folder, names, writer)
    os.close(writer)
    reported = 0
    cause = f"its import took longer than {timeout:g} s"
    try:
        for line in _lines(reader, timeout):
            if line is None:
                break
            reported += 1
            yield json.loads(line)
        else:
            cause = "its import ended the process"
        if reported < len(names):
            yield _failed(names[reported], cause)
    finally:
        os.close(reader)
        _end(child)


def _report_all(folder: str, names: list[str], writer: int) -> None:
    """The child's part. Never returns."""
    os.setsid()
    kernel.adopt_orphans()
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    for name in names:
        report = _report(folder, name)
        os.write(writer, json.dumps(report).encode() + b"\n")
        if not report["shareable"]:
            break
    os._exit(0)


def _report(folder: str, name: str) -> Report:
    try:
        units = describe(load(folder, name))
    except BaseException as error:
        return _failed(name, reported(error))
    report = {"module": name, "units": units, "error": None, "shareable": not kernel.shares_badly()}
    if len(json.dumps(report)) > LONGEST_REPORT:
        return _failed(name, f"it describes its {len(units)} units in more than {LONGEST_REPORT >> 10} KiB")
    return report


def _failed(name: str, error: str) -> Report:
    return {"module": name, "units": [], "error": error, "shareable": True}


def _lines(reader: int, timeout: float) -> Iterator[Any]:
    """The lines as they come; None when none came for too long; the end when the other side has closed."""
    pending = b""
    expires = time.monotonic() + timeout
    while True:
        ready, _, _ = select.select([reader], [], [], max(0.0, expires - time.monotonic()))
        if not ready:
            yield None
            return
        received = os.read(reader, 65536)
        if not received:
            return
        *lines, pending = (pending + received).split(b"\n")
        yield from lines
        if lines:
            expires = time.monotonic() + timeout


def _end(child: int) -> None:
    """End the child and everything that its modules started: orphans come to us, being its adopter."""
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    for orphan in kernel.children():
        os.kill(orphan, signal.SIGKILL)
        os.waitpid(orphan, 0)
