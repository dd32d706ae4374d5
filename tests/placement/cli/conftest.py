"""Simulated engines for commands, with or without a real proxy that has reported of its units."""

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from ovirt_placement.model import Snapshot
from tests.placement.cli.live_engine import LiveEngine, Starting, StateAsking, live_engine
from tests.plugins.proxy_process import proxy_url


@pytest.fixture(scope="module")
def proxy() -> Iterator[str]:
    with proxy_url(os.environ) as url:
        yield url


@pytest.fixture
def serving(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Starting:
    """Serve engines, one after another; the store stays the same."""

    def start(state: Snapshot, **more: Any) -> AbstractContextManager[LiveEngine]:
        return live_engine(state, tmp_path, capsys, monkeypatch, **more)

    return start


@pytest.fixture
def starting(proxy: str, serving: Starting) -> Starting:
    """Serve engines that have asked a proxy for its units."""

    def start(state: Snapshot, **more: Any) -> AbstractContextManager[LiveEngine]:
        return serving(state, **{"proxy": proxy, **more})

    return start


@pytest.fixture
def live(request: pytest.FixtureRequest, serving: Starting) -> Iterator[LiveEngine]:
    """An engine with what the test's module has as `STATE`."""
    with serving(request.module.STATE) as running:
        yield running


@pytest.fixture
def asking(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> StateAsking:
    return StateAsking(tmp_path, capsys)
