"""The configuration of a service that asks the recorded engine but rarely, and of those who read from it."""

from pathlib import Path

import pytest

from ovirt_placement.config import Config
from tests.placement.engine_server import EngineServer
from tests.placement.inventory.running import configured, loaded


@pytest.fixture
def file(tmp_path: Path, engine: EngineServer) -> Path:
    return configured(tmp_path, engine)


@pytest.fixture
def config(file: Path) -> Config:
    return loaded(file)
