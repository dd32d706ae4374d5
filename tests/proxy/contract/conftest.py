"""A proxy for each module of these tests: what it reported once it does not repeat for a while."""

from collections.abc import Iterator

import pytest

from ..running import RunningProxy, serving
from .units import CONFIG, PLUGINS


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningProxy]:
    with serving(tmp_path_factory.mktemp("contract"), config=CONFIG, units=PLUGINS) as started:
        yield started
