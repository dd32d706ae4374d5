"""`ovirt-scheduler-proxy check`: loads everything and prints each unit with what is wrong with it."""

from __future__ import annotations

import asyncio
import json
import logging
import textwrap
from collections.abc import Mapping

import msgspec

from ovirt_service.decoding import nearest
from ovirt_service.tables import table

from .plugins.loading import load_all
from .plugins.properties import unchecked
from .settings import Settings
from .units import Registry, Unit
from .worker.text import lines

#: Descriptions are wrapped at this many characters.
_WIDTH = 60


class CheckedUnit(msgspec.Struct, frozen=True):
    """A policy unit that a plugin offers."""

    unit: str
    #: `filter`, `weight` or `balance`.
    kind: str
    file: str
    #: Its parameters with the patterns of their values, as the engine gets them.
    parameters: str
    description: str


class ProblemFound(msgspec.Struct, frozen=True):
    """What is wrong with a plugin, or with what the configuration says of units."""

    #: Empty: it is in the configuration.
    file: str
    #: Empty: it is not of one unit.
    unit: str
    #: As a sentence.
    problem: str


class ProxyCheck(msgspec.Struct, frozen=True):
    """The policy units of all plugin folders, and what is wrong."""

    units: tuple[CheckedUnit, ...]
    problems: tuple[ProblemFound, ...]
    #: What only the engine can judge.
    unchecked: tuple[ProblemFound, ...]


def check(settings: Settings, as_json: bool, *, whole: bool) -> int:
    """Print the units and problems of all plugin folders, and files and parameters if `whole`.

    Returns 1 when there is a problem, else 0.
    """
    logging.disable()  # what is wrong is printed below
    workers = msgspec.structs.replace(settings.workers, warm=1)
    registry = asyncio.run(_load(msgspec.structs.replace(settings, workers=workers)))
    unknown = _unknown_units(settings, registry)
    print(_as_json(registry, unknown) if as_json else _as_text(registry, unknown, whole=whole))
    return 1 if registry.problems or unknown else 0


def _unknown_units(settings: Settings, registry: Registry) -> dict[str, str]:
    """Units that the configuration speaks of and no plugin offers, each with what is wrong about it."""
    known = {unit.name for unit in registry.units}
    return {
        name: f"[units.{name}] in the configuration: no plugin has such a unit{nearest(name, known)}"
        for name in settings.units
        if name not in known
    }


async def _load(settings: Settings) -> Registry:
    plugins = await load_all(settings)
    for pool in plugins.pools.values():
        await pool.close()
    return plugins.registry


def _as_text(registry: Registry, unknown: Mapping[str, str], *, whole: bool) -> str:
    headers = ("unit", "kind", "description", *(("file", "parameters") if whole else ()))
    rows = [_row(unit, whole=whole) for unit in registry.units]
    parts = [table(rows, headers) if rows else "There is no unit."]
    problems = [*map(str, registry.problems), *unknown.values()]
    if problems:
        parts.append(lines("\n".join(["Problems:", *[f"  {problem}" for problem in problems]])))
    if unchecked := [f"  {one.file}: {one.unit}: {one.problem}" for one in _unchecked(registry)]:
        parts.append(lines("\n".join(["Not checked:", *unchecked])))
    return "\n\n".join(parts)


def _unchecked(registry: Registry) -> tuple[ProblemFound, ...]:
    found = {(unit.file, unit.name): unchecked(unit.properties) for unit in registry.units}
    return tuple(
        ProblemFound(str(file), name, sentence)
        for (file, name), sentences in found.items()
        for sentence in sentences
    )


def _row(unit: Unit, *, whole: bool) -> tuple[str, ...]:
    description = "\n".join(textwrap.wrap(unit.description, _WIDTH))
    more = (str(unit.file), unit.properties.replace(";", "\n")) if whole else ()
    return unit.name, unit.kind.value, description, *more


def _as_json(registry: Registry, unknown: Mapping[str, str]) -> str:
    units = (
        CheckedUnit(unit.name, unit.kind.value, str(unit.file), unit.properties, unit.description)
        for unit in registry.units
    )
    problems = [ProblemFound(str(one.file), one.unit, one.sentence) for one in registry.problems]
    problems += [ProblemFound("", name, sentence) for name, sentence in unknown.items()]
    found = ProxyCheck(tuple(units), tuple(problems), _unchecked(registry))
    return json.dumps(msgspec.to_builtins(found), indent=2)
