"""Starts the pools of all plugin folders and reads from them which units there are."""

from __future__ import annotations

import logging
import os
from pathlib import Path

from ..contract.scheduler import Plugins
from ..settings import PluginFolder, Settings, python_of
from ..workers.pool import Pool, PoolSettings
from .reading import Folder, read

log = logging.getLogger(__name__)

#: Seconds that the first workers may take to stand ready, beside the time to load.
_WARM_UP = 10.0


def start_pool(settings: Settings, folder: PluginFolder) -> Pool:
    """Load one folder and warm its workers up. Raises `UserError` when its interpreter cannot be run."""
    workers = settings.workers
    pool = Pool(
        PoolSettings(
            folder=Path(os.path.realpath(folder.directory)),
            python=python_of(folder),
            warm=workers.warm,
            most=workers.most,
            memory_limit=workers.memory_mib << 20,
            calls_per_worker=folder.calls_per_worker,
            load_timeout=workers.load_seconds,
            log_level=logging.getLogger().getEffectiveLevel(),
        )
    )
    if not pool.wait_until_warm(_WARM_UP):
        log.warning("the workers of %s are not ready yet; its calls will wait for them", folder.directory)
    return pool


def load_all(settings: Settings) -> Plugins:
    """Start every folder's pool. Raises `UserError`, after ending those that were started."""
    pools: list[Pool] = []
    try:
        for folder in settings.plugins:
            pools.append(start_pool(settings, folder))
    except BaseException:
        for pool in pools:
            pool.close()
        raise
    return combine(pools)


def combine(pools: list[Pool]) -> Plugins:
    """What the pools offer together."""
    registry = read([Folder(pool.settings.folder, pool.modules) for pool in pools])
    return Plugins(registry, {pool.settings.folder: pool for pool in pools})
