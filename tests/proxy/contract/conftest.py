"""A proxy for each module of these tests: what it reported once it does not repeat for a while."""

from collections.abc import Iterator

import pytest

from ..running import RunningProxy, running, write_plugins
from .units import CONFIG, PLUGINS


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningProxy]:
    folder = write_plugins(tmp_path_factory.mktemp("contract") / "plugins", units=PLUGINS)
    with running(folder, config=CONFIG) as started:
        yield started
