"""`ovirt-scheduler-proxy check`: loads everything and prints each unit with what is wrong with it."""

from __future__ import annotations

import asyncio
import json
import logging

import msgspec
from tabulate import tabulate

from .plugins.loading import load_all
from .settings import Settings
from .units import Registry


def check(settings: Settings, as_json: bool) -> int:
    """Print the units and problems of all plugin folders. Returns 1 when there is a problem, else 0."""
    logging.disable()  # what is wrong is printed below
    workers = msgspec.structs.replace(settings.workers, warm=1)
    registry = asyncio.run(_load(msgspec.structs.replace(settings, workers=workers)))
    print(_as_json(registry) if as_json else _as_text(registry))
    return 1 if registry.problems else 0


async def _load(settings: Settings) -> Registry:
    plugins = await load_all(settings)
    for pool in plugins.pools.values():
        await pool.close()
    return plugins.registry


def _as_text(registry: Registry) -> str:
    rows = [
        (unit.name, unit.kind.value, str(unit.file), unit.properties.replace(";", "\n"), unit.description)
        for unit in registry.units
    ]
    headers = ("unit", "kind", "file", "parameters", "description")
    parts = (
        [tabulate(rows, headers, maxcolwidths=[None, None, None, None, 60])]
        if rows
        else ["There is no unit."]
    )
    if registry.problems:
        parts.append("\n".join(["Problems:", *[f"  {problem}" for problem in registry.problems]]))
    return "\n\n".join(parts)


def _as_json(registry: Registry) -> str:
    units = [
        {
            "unit": unit.name,
            "kind": unit.kind.value,
            "file": str(unit.file),
            "parameters": unit.properties,
            "description": unit.description,
        }
        for unit in registry.units
    ]
    problems = [
        {"file": str(problem.file), "unit": problem.unit, "problem": problem.sentence}
        for problem in registry.problems
    ]
    return json.dumps({"units": units, "problems": problems}, indent=2, ensure_ascii=False)
