"""Makes the registry out of what the plugin folders' modules reported: pure functions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..units import Problem, Registry, Unit, UnitKind
from . import properties

#: The engine's table of policy units holds no longer names.
LONGEST_NAME = 128
_NAME_RULE = f"it may have {LONGEST_NAME} characters, all of them printable and not all of them spaces"


@dataclass(frozen=True)
class Folder:
    """A plugin folder and the reports about its modules, as `worker.probing` makes them."""

    path: Path
    modules: Iterable[dict[str, Any]]


def read(folders: Iterable[Folder]) -> Registry:
    """All units of all folders, the first of a name winning, and all that is wrong with them."""
    units: list[Unit] = []
    problems: list[Problem] = []
    taken: dict[str, tuple[str, Path]] = {}
    for folder in folders:
        for module in folder.modules:
            file = folder.path / f"{module['module']}.py"
            if module["error"] is not None:
                problems.append(Problem(file, f"cannot be loaded: {module['error']}"))
            for described in module["units"]:
                name = described["name"]
                if len(name) > LONGEST_NAME or not name.isprintable() or not name.strip():
                    problems.append(
                        Problem(file, f"the engine keeps no unit of this name: {_NAME_RULE}", name)
                    )
                    continue
                origin, first = taken.setdefault(name, (described["origin"], file))
                if first == file:
                    units.extend(_units(folder.path, module["module"], described))
                    problems.extend(_problems(file, described))
                elif origin != described["origin"]:
                    problems.append(
                        Problem(file, f"its name is taken by the unit in {first}, which is used", name)
                    )
    return Registry(tuple(units), tuple(problems))


def _units(folder: Path, module: str, described: dict[str, Any]) -> list[Unit]:
    # The engine drops a unit with such parameters, or ends its discovery: it is offered without any.
    offered = "" if properties.problems(described["properties"]) else described["properties"]
    return [
        Unit(described["name"], UnitKind(kind), folder, module, description, offered)
        for kind, description in described["kinds"].items()
    ]


def _problems(file: Path, described: dict[str, Any]) -> list[Problem]:
    found = [*described["problems"], *properties.problems(described["properties"])]
    return [Problem(file, sentence, described["name"]) for sentence in found]
