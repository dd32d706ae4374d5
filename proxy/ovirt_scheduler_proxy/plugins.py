"""Starts the pools of all plugin folders, reads their units, and replaces pools whose files have changed."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from ovirt_scheduler_proxy import units as checks
from ovirt_scheduler_proxy.pool import Pool, start_zygote
from ovirt_scheduler_proxy.scheduler import Plugins, Scheduler
from ovirt_scheduler_proxy.settings import PluginFolder, Settings
from ovirt_scheduler_proxy.units import ProblemFound, Unit, UnitKind
from ovirt_scheduler_proxy.worker import kernel
from ovirt_service.errors import UserError

#: The engine's table of policy units holds no longer names.
LONGEST_NAME = 128
_NAME_RULE = f"it may have {LONGEST_NAME} characters, all of them printable and not all of them spaces"


def combine(pools: Sequence[Pool]) -> Plugins:
    """What the pools offer together, the first unit of a name winning; what is wrong goes to the log too."""
    units: list[Unit] = []
    problems: list[ProblemFound] = []
    taken: dict[str, tuple[str, str]] = {}
    for pool in pools:
        for module in pool.modules:
            file = str(pool.folder / f"{module['module']}.py")
            if module["error"] is not None:
                problems.append(ProblemFound(file, "", f"cannot be loaded: {module['error']}"))
            for described in module["units"]:
                name = described["name"]
                if len(name) > LONGEST_NAME or not name.isprintable() or not name.strip():
                    problems.append(
                        ProblemFound(file, name, f"the engine keeps no unit of this name: {_NAME_RULE}")
                    )
                    continue
                origin, first = taken.setdefault(name, (described["origin"], file))
                if first == file:
                    units.extend(_units(pool.folder, module["module"], described))
                    found = (*described["problems"], *checks.property_problems(described["properties"]))
                    problems.extend(ProblemFound(file, name, sentence) for sentence in found)
                elif origin != described["origin"]:
                    taken_by = f"its name is taken by the unit in {first}, which is used"
                    problems.append(ProblemFound(file, name, taken_by))
    for problem in problems:
        log.error("%s", problem)
    return Plugins(tuple(units), tuple(problems), {pool.folder: pool for pool in pools})


def _units(folder: Path, module: str, described: dict[str, Any]) -> list[Unit]:
    # The engine drops a unit with such parameters, or ends its discovery: it is offered without any.
    offered = "" if checks.property_problems(described["properties"]) else described["properties"]
    return [
        Unit(described["name"], UnitKind(kind), folder, module, description, offered)
        for kind, description in described["kinds"].items()
    ]


log = logging.getLogger(__name__)


async def start_pool(settings: Settings, folder: PluginFolder) -> Pool:
    """Load one folder and warm its workers up. Raises `UserError` when its interpreter cannot be run."""
    workers = settings.workers
    # Also when its processes are started again, where a link leads elsewhere by then.
    folder = msgspec.structs.replace(folder, directory=os.path.realpath(folder.directory))
    pool = Pool(folder, workers, await asyncio.to_thread(start_zygote, folder, workers))
    try:
        await asyncio.wait_for(pool.warm.wait(), workers.load_seconds)
    except TimeoutError:
        log.warning("the workers of %s are not ready yet; calls will wait for them", folder.directory)
    return pool


async def load_all(settings: Settings) -> Plugins:
    """Start every folder's pool. Raises `UserError`, after ending those that were started."""
    kernel.adopt_orphans()
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


#: What distinguishes one version of a folder's files from another.
Stamp = frozenset[tuple[str, int, int]]

#: Seconds that a replaced pool lives on beyond the deadline of the calls that may still use it.
_GRACE = 1.0


class Reloader:
    """Owns the pools that `scheduler` uses. Reloads happen one after the other."""

    def __init__(self, settings: Settings, scheduler: Scheduler) -> None:
        self._settings = settings
        self._scheduler = scheduler
        self._lock = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        #: Pools that were replaced and may still have calls.
        self._leaving: set[Pool] = set()
        self._loaded = {folder.directory: stamp(folder.directory) for folder in settings.plugins}

    async def watch(self) -> None:
        """Reload the folders whose files have changed and are quiet: an editor may still be writing."""
        interval = self._settings.reload.watch_seconds
        seen = dict(self._loaded)
        while interval:
            await asyncio.sleep(interval)
            for folder in self._settings.plugins:
                name = folder.directory
                now = await asyncio.to_thread(stamp, name)
                if now != self._loaded[name] and now == seen[name]:
                    self._start(folder, now)
                seen[name] = now

    def reload_all(self) -> None:
        for folder in self._settings.plugins:
            self._start(folder, stamp(folder.directory))

    async def close(self) -> None:
        """End all pools, the replaced ones too."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        pools = {*self._scheduler.plugins.pools.values(), *self._leaving}
        await asyncio.gather(*(pool.close() for pool in pools))

    def _start(self, folder: PluginFolder, now: Stamp) -> None:
        self._loaded[folder.directory] = now
        task = asyncio.get_running_loop().create_task(self._reload(folder))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _reload(self, folder: PluginFolder) -> None:
        path = Path(os.path.realpath(folder.directory))
        async with self._lock:
            before = self._scheduler.plugins
            try:
                fresh = await start_pool(self._settings, folder)
            except UserError as error:
                log.error("%s; its plugins stay as they were", error)
                return
            old = before.pools[path]
            if trouble := _trouble(old, fresh):
                log.error("the plugins of %s stay as they were, for %s", path, trouble)
                await fresh.close()
                return
            after = combine([fresh if pool is old else pool for pool in before.pools.values()])
            self._scheduler.plugins = after
            self._leaving.add(old)
        log.info("reloaded the plugins of %s", path)
        for sentence in engine_will_miss(before, after):
            log.warning("%s", sentence)
        # The calls that began before may use the old workers until their deadline.
        await asyncio.sleep(self._settings.calls.deadline_seconds + _GRACE)
        self._leaving.discard(old)
        await old.close()


def _trouble(old: Pool, fresh: Pool) -> str:
    """Why the fresh pool cannot take the old one's place; empty when it can."""
    worked = {module["module"] for module in old.modules if module["error"] is None}
    failed = [
        f"{module['module']}.py cannot be loaded: {module['error']}"
        for module in fresh.modules
        if module["error"] is not None and module["module"] in worked
    ]
    if failed:  # a half-written file must not cost a unit
        return "; ".join(failed)
    if any(module["units"] for module in old.modules) and not any(m["units"] for m in fresh.modules):
        return "the folder has no unit any more; a restart of the proxy would take that for its will"
    return "" if fresh.has_workers else "no worker of the new ones becomes ready"


def stamp(directory: str) -> Stamp:
    """The names, times and sizes of all Python files below a folder."""
    found = set()
    for place, folders, files in os.walk(directory):
        folders[:] = [folder for folder in folders if folder != "__pycache__" and not folder.startswith(".")]
        for file in files:
            if file.endswith(".py"):
                path = os.path.join(place, file)
                try:
                    status = os.stat(path)
                except OSError:
                    continue  # it was removed in this moment; the next look will agree
                found.add((path, status.st_mtime_ns, status.st_size))
    return frozenset(found)


def engine_will_miss(before: Plugins, after: Plugins) -> list[str]:
    """What changed for the engine, which asks only when it starts: sentences for the log."""
    old = {(unit.kind, unit.name): (unit.description, unit.properties) for unit in before.units}
    new = {(unit.kind, unit.name): (unit.description, unit.properties) for unit in after.units}
    what = {
        "is new: the engine will not offer it before it is restarted": new.keys() - old.keys(),
        "is gone: the engine will go on asking for it until it is restarted": old.keys() - new.keys(),
        "has another description or other properties: the engine will not notice before it is restarted": {
            unit for unit in old.keys() & new.keys() if old[unit] != new[unit]
        },
    }
    return [
        f"{kind.value} {name} {change}"
        for change, units in what.items()
        for kind, name in sorted(units, key=str)
    ]
