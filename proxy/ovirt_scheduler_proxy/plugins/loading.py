"""Starts the pools of all plugin folders and reads from them which units there are."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Sequence
from pathlib import Path

from ..contract.scheduler import Plugins
from ..pool.pool import Pool, start_zygote
from ..pool.pool_settings import PoolSettings
from ..settings import PluginFolder, Settings, python_of
from .reading import Folder, read

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
