"""The configuration of a service that asks the recorded engine but rarely; a follower of a simulated one."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ovirt_placement.config import Config
from ovirt_simulator.generate import Sizes, generate
from tests.placement.engine_server import EngineServer
from tests.placement.inventory.running import configured, loaded
from tests.placement.inventory.stage import Stage, staged


@pytest.fixture
def file(tmp_path: Path, engine: EngineServer) -> Path:
    return configured(tmp_path, engine)


@pytest.fixture
def config(file: Path) -> Config:
    return loaded(file)


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with staged(tmp_path, generate(Sizes(clusters=2, hosts=8, vms=40, groups=8), 3)) as made:
        yield made
