"""Starts the pools of all plugin folders and reads from them which units there are."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..contract.scheduler import Plugins
from ..pool.pool import Pool, start_zygote
from ..pool.pool_settings import PoolSettings
from ..settings import PluginFolder, Settings, python_of
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


log = logging.getLogger(__name__)


async def start_pool(settings: Settings, folder: PluginFolder) -> Pool:
    """Load one folder and warm its workers up. Raises `UserError` when its interpreter cannot be run."""
    workers = settings.workers
    pool_settings = PoolSettings(
        folder=Path(os.path.realpath(folder.directory)),
        python=python_of(folder),
        warm=workers.warm,
        most=workers.most,
        memory_limit=workers.memory_mib << 20,
        calls_per_worker=folder.calls_per_worker,
        load_timeout=workers.load_seconds,
        log_level=logging.getLogger().getEffectiveLevel(),
    )
    pool = Pool(pool_settings, await asyncio.to_thread(start_zygote, pool_settings))
    try:
        await asyncio.wait_for(pool.warm.wait(), workers.load_seconds)
    except TimeoutError:
        log.warning("the workers of %s are not ready yet; calls will wait for them", folder.directory)
    return pool


async def load_all(settings: Settings) -> Plugins:
    """Start every folder's pool. Raises `UserError`, after ending those that were started."""
    started = await asyncio.gather(
        *(start_pool(settings, folder) for folder in settings.plugins), return_exceptions=True
    )
    pools = [pool for pool in started if isinstance(pool, Pool)]
    failures = [failure for failure in started if isinstance(failure, BaseException)]
    if failures:
        for pool in pools:
            await pool.close()
        raise failures[0]
    return combine(pools)


def combine(pools: Sequence[Pool]) -> Plugins:
    """What the pools offer together; what is wrong with them goes to the log."""
    registry = read([Folder(pool.settings.folder, pool.modules) for pool in pools])
    for problem in registry.problems:
        log.error("%s", problem)
    return Plugins(registry, {pool.settings.folder: pool for pool in pools})
