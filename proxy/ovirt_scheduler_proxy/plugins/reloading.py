"""Loads changed plugins into new workers and puts these in the old ones' place, without dropping a call."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from pathlib import Path

from ..contract.scheduler import Plugins, Scheduler
from ..errors import UserError
from ..settings import PluginFolder, Settings
from ..units import Registry
from ..workers.pool import Pool
from .loading import combine, start_pool

log = logging.getLogger(__name__)

#: What tells one version of a folder's files from another.
Stamp = frozenset[tuple[str, int, int]]

#: Seconds that a replaced pool lives on beyond the deadline of the calls that may still use it.
_GRACE = 1.0


class Reloader:
    """Owns the pools that `scheduler` uses. Reloads happen one after the other, in threads of their own."""

    def __init__(self, settings: Settings, scheduler: Scheduler) -> None:
        self._settings = settings
        self._scheduler = scheduler
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._threads: list[threading.Thread] = []
        self._loaded = {folder.directory: stamp(folder.directory) for folder in settings.plugins}
        self._seen = dict(self._loaded)

    @property
    def well(self) -> bool:
        """Whether every pool is looked after."""
        return all(pool.alive for pool in self._scheduler.plugins.pools.values())

    def look(self) -> None:
        """Reload the folders whose files have changed and are quiet: an editor may still be writing."""
        for folder in self._settings.plugins:
            name = folder.directory
            now = stamp(name)
            if now != self._loaded[name] and now == self._seen[name]:
                self._loaded[name] = now
                self._in_thread(lambda folder=folder: self._reload(folder))  # type: ignore[misc]
            self._seen[name] = now

    def reload_all(self) -> None:
        for folder in self._settings.plugins:
            self._loaded[folder.directory] = stamp(folder.directory)
            self._in_thread(lambda folder=folder: self._reload(folder))  # type: ignore[misc]

    def close(self) -> None:
        """End all pools, the replaced ones too."""
        self._closing.set()
        for thread in self._threads:
            thread.join()
        for pool in self._scheduler.plugins.pools.values():
            pool.close()

    def _reload(self, folder: PluginFolder) -> None:
        with self._lock:
            if self._closing.is_set():
                return
            path = Path(os.path.realpath(folder.directory))
            before = self._scheduler.plugins
            try:
                fresh = start_pool(self._settings, folder)
            except UserError as error:
                log.error("%s; its plugins stay as they were", error)
                return
            broken = _newly_broken(before.pools[path], fresh)
            if broken:
                log.error("plugins of %s stay as they were, for %s", path, "; ".join(broken))
                fresh.close()
                return
            after = combine([fresh if pool is before.pools[path] else pool for pool in before.pools.values()])
            self._scheduler.plugins = after
        _tell(path, before, after)
        # The calls that began before may use the old workers until their deadline.
        self._closing.wait(self._settings.calls.deadline_seconds + _GRACE)
        before.pools[path].close()

    def _in_thread(self, work: Callable[[], None]) -> None:
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        thread = threading.Thread(target=work, name="reload", daemon=True)
        self._threads.append(thread)
        thread.start()


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
    told = []
    for kind, name in sorted(new.keys() - old.keys(), key=str):
        told.append(f"{kind.value} {name} is new: the engine will not offer it before it is restarted")
    for kind, name in sorted(old.keys() - new.keys(), key=str):
        told.append(f"{kind.value} {name} is gone: the engine will go on asking for it until it is restarted")
    for kind, name in sorted(old.keys() & new.keys(), key=str):
        if old[kind, name] != new[kind, name]:
            told.append(
                f"{kind.value} {name} has another description or other properties: the engine will not notice"
                " before it is restarted"
            )
    return told


def _newly_broken(before: Pool, after: Pool) -> list[str]:
    """The modules that were loaded before and cannot be now: a half-written file must not cost a unit."""
    worked = {module["module"] for module in before.modules if module["error"] is None}
    return [
        f"{module['module']}.py cannot be loaded: {module['error']}"
        for module in after.modules
        if module["error"] is not None and module["module"] in worked
    ]


def _tell(path: Path, before: Plugins, after: Plugins) -> None:
    log.info("reloaded the plugins of %s", path)
    for problem in after.registry.problems:
        log.error("%s", problem)
    for sentence in engine_will_miss(before.registry, after.registry):
        log.warning("%s", sentence)
