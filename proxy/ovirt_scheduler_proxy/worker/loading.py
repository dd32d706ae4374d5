"""Imports a plugin folder's modules and describes their units."""

from __future__ import annotations

import importlib
import inspect
import json
import os
import sys
from types import ModuleType
from typing import Any

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


def load_and_report(folder: str, name: str) -> tuple[ModuleType | None, Report]:
    """Import a module and say what it offers; without the module if that fails."""
    module = None
    report: Report = {"module": name, "units": [], "error": None}
    try:
        module = load(folder, name)
        report["units"] = describe(module)
        if len(json.dumps(report)) > LONGEST_REPORT:
            count, report["units"] = len(report["units"]), []
            report["error"] = f"it describes its {count} units in more than {LONGEST_REPORT >> 10} KiB"
    except BaseException as error:
        report["error"] = reported(error)
    return module if report["error"] is None else None, report
