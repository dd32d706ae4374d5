"""Settings for all tests: properties judge answers, not the speed of a busy machine; nothing stays behind."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from hypothesis import settings

from tests.browsers import axe, chromium
from tests.examples import EXAMPLES

__all__ = ["axe", "chromium"]

settings.register_profile("default", deadline=None, max_examples=EXAMPLES)
settings.load_profile("default")

_FOLDERS = pytest.StashKey[frozenset[Path]]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_FOLDERS] = _folders_in_memory()


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove what units have left in memory for each other, once all workers are done."""
    if not hasattr(config, "workerinput"):
        for folder in _folders_in_memory() - config.stash[_FOLDERS]:
            shutil.rmtree(folder, ignore_errors=True)


def _folders_in_memory() -> frozenset[Path]:
    return frozenset(Path("/dev/shm").glob(f"ovirt-placement-{os.getuid()}-*"))
