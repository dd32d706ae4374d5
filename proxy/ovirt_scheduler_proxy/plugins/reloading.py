"""Loads changed plugins into new workers and puts these in the old ones' place, without dropping a call."""

from __future__ import annotations

import asyncio
import logging
import os
from pathlib import Path

from ovirt_service.errors import UserError

from ..contract.scheduler import Scheduler
from ..pool.pool import Pool
from ..pool.proving import answers
from ..settings import PluginFolder, Settings
from ..units import Registry
from .loading import combine, start_pool

log = logging.getLogger(__name__)

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
            trouble = await self._trouble(old, fresh)
            if trouble:
                log.error("the plugins of %s stay as they were, for %s", path, trouble)
                await fresh.close()
                return
            after = combine([fresh if pool is old else pool for pool in before.pools.values()])
            self._scheduler.plugins = after
            self._leaving.add(old)
        log.info("reloaded the plugins of %s", path)
        for sentence in engine_will_miss(before.registry, after.registry):
            log.warning("%s", sentence)
        # The calls that began before may use the old workers until their deadline.
        await asyncio.sleep(self._settings.calls.deadline_seconds + _GRACE)
        self._leaving.discard(old)
        await old.close()

    async def _trouble(self, old: Pool, fresh: Pool) -> str:
        """Why the fresh pool cannot take the old one's place; empty when it can."""
        failed = _newly_failed(old, fresh)
        if failed:
            return "; ".join(failed)
        if _has_units(old) and not _has_units(fresh):
            return "the folder has no unit any more; a restart of the proxy would take that for its will"
        if not await answers(fresh, self._settings.workers.load_seconds):
            return "no worker of the new ones answers"
        return ""


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


def engine_will_miss(before: Registry, after: Registry) -> list[str]:
    """What changed for the engine, which asks only when it starts: sentences for the log."""
    old = {(unit.kind, unit.name): (unit.description, unit.properties) for unit in before.units}
    new = {(unit.kind, unit.name): (unit.description, unit.properties) for unit in after.units}
    reported = []
    for kind, name in sorted(new.keys() - old.keys(), key=str):
        reported.append(f"{kind.value} {name} is new: the engine will not offer it before it is restarted")
    for kind, name in sorted(old.keys() - new.keys(), key=str):
        reported.append(
            f"{kind.value} {name} is gone: the engine will go on asking for it until it is restarted"
        )
    for kind, name in sorted(old.keys() & new.keys(), key=str):
        if old[kind, name] != new[kind, name]:
            reported.append(
                f"{kind.value} {name} has another description or other properties: the engine will not notice"
                " before it is restarted"
            )
    return reported


def _has_units(pool: Pool) -> bool:
    return any(module["units"] for module in pool.modules)


def _newly_failed(before: Pool, after: Pool) -> list[str]:
    """The modules that were loaded before and cannot be now: a half-written file must not cost a unit."""
    worked = {module["module"] for module in before.modules if module["error"] is None}
    return [
        f"{module['module']}.py cannot be loaded: {module['error']}"
        for module in after.modules
        if module["error"] is not None and module["module"] in worked
    ]
