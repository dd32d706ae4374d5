"""Imports a plugin folder's modules, each first in a process of its own, and describes their units."""

from __future__ import annotations

import importlib
import inspect
import json
import os
import select
import signal
import sys
import time
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from ovirt_scheduler_proxy.worker import kernel
from ovirt_scheduler_proxy.worker.answers import lines, one_line, reported

#: Longer texts about a unit are of no use.
LONGEST_DESCRIPTION = 10_000
LONGEST_PROPERTIES = 50_000

#: This many parameters a unit may have. The engine matches all of them by one regular expression, which runs
#: out of stack at 500 to 1000 of them: that ends its discovery, and all external units stay disabled.
MOST_PROPERTIES = 100

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
    if standing is not None and not _lies_in(standing, folder):
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
        kinds[kind] = _description(function)
        problems.extend(_method_problems(function, method, arguments))
    problems.extend(_constructor_problems(unit))
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


def _description(function: Any) -> str:
    text = inspect.cleandoc(function.__doc__) if isinstance(function.__doc__, str) else ""
    return lines(text[:LONGEST_DESCRIPTION])


def _method_problems(function: Any, method: str, arguments: int) -> list[str]:
    if not callable(function):
        return [f"{method} is no method"]
    try:
        inspect.signature(function).bind(*range(arguments + 1))
    except TypeError:
        wanted = "(self, hosts, args)" if arguments == 2 else "(self, hosts, vm, args)"
        return [f"{method} must take {wanted}"]
    except ValueError:
        pass  # a method written in C says nothing of its arguments
    return []


def _constructor_problems(unit: type) -> list[str]:
    try:
        inspect.signature(unit).bind()
    except TypeError:
        return ["its constructor needs arguments, but a unit is made without any"]
    except ValueError:
        pass
    return []


def _file_of(unit: type) -> str:
    try:
        return os.path.realpath(inspect.getfile(unit))
    except (TypeError, OSError):
        return unit.__module__


def _lies_in(module: ModuleType, folder: str) -> bool:
    file = getattr(module, "__file__", None)
    return file is not None and os.path.realpath(file).startswith(os.path.realpath(folder) + os.sep)


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
