"""Runs a storm against an engine alone or against one with our parts, and gives its figures."""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.integration.storms import figures
from tests.integration.storms.clients import start_all
from tests.integration.storms.cluster import Storm
from tests.integration.storms.figures import Figures, watching_ages
from tests.integration.storms.stage import alone, with_ours
from tests.paths import PLUGINS

#: How long the clients of a storm wait for their answers.
PATIENCE_SECONDS = 120.0


def run_alone(storm: Storm, threads: int, patience: float = PATIENCE_SECONDS) -> Figures:
    """Run a storm with the engine's own units."""
    with (
        tempfile.TemporaryDirectory() as folder,
        alone(Path(folder), storm.state, threads=threads) as stage,
    ):
        burst = start_all(stage.url, stage.token, storm.starts, patience=patience)
        return Figures(storm, burst, stage.hosts())


def run_with_ours(
    storm: Storm,
    threads: int,
    patience: float = PATIENCE_SECONDS,
    *,
    max_age: float | None = None,
    plugins: Path = PLUGINS,
) -> Figures:
    """Run a storm with proxy, units and inventory.

    Units want a newer snapshot than one that is `max_age` seconds old (None: as configured unless reported).
    """
    with (
        tempfile.TemporaryDirectory() as folder,
        with_ours(Path(folder), storm.state, threads=threads, max_age=max_age, plugins=plugins) as stage,
        watching_ages(stage.published) as ages,
    ):
        burst = start_all(stage.url, stage.token, storm.starts, patience=patience)
        return figures.of(storm, burst, stage, ages)
