"""Serves snapshots as the inventory does, for units that run in processes of their own."""

import ast
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ovirt_placement.inventory import publication
from ovirt_placement.inventory.publication import Moments
from ovirt_placement.model import Snapshot
from tests.kit.served import ServedInventory
from tests.paths import PLUGINS

#: Nothing of the past counts: each question of a test is one by itself.
WITHOUT_PAST = "expected_seconds = 0.000001"
#: What is published here stays fresh for the whole test.
_FOREVER_SECONDS = 10**9


class Publisher:
    """A folder with a configuration and a socket, where every reader finds the snapshot."""

    def __init__(self, folder: Path, *, inventory: str = "") -> None:
        """Further lines of `inventory` go into that section of the configuration."""
        self.config = self.configured(folder, inventory)
        #: What a process needs to find it.
        self.environment = {**os.environ, "OVIRT_PLACEMENT_CONFIG": str(self.config)}
        self._served = ServedInventory(self.config)
        self.close = self._served.close

    @staticmethod
    def configured(folder: Path, inventory: str = "") -> Path:
        """Write a configuration by which what is published stays fresh."""
        file = folder / "ovirt-placement.toml"
        file.write_text(
            f'[inventory]\ndirectory = "{folder}"\nmax_age_seconds = {_FOREVER_SECONDS}\n{inventory}\n'
            f'[store]\nurl = "sqlite:///{folder}/store.db"\npatience_seconds = 30.0\n'
        )
        return file

    def publish(
        self,
        snapshot: Snapshot,
        *,
        keys_ago: float | None = 0.0,
        same_story: bool = False,
        seconds_ago: float = 0.0,
    ) -> None:
        """Publish a snapshot of `seconds_ago`; `keys_ago` its keys were those of a store, or never.

        Decisions of before count on only in the same story.
        """
        now = publication.now()
        keys_at = float("-inf") if keys_ago is None else now - keys_ago
        moments = Moments(now - seconds_ago, store_asked_at=now, keys_at=keys_at)
        self._served.publish(snapshot, moments, same_story=same_story)


def run_alone(call: str, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run `MODULE.CLASS().METHOD(...)` of a unit in a process of its own, as the old proxy does."""
    return subprocess.run(
        [sys.executable, "-c", f"import {call.partition('.')[0]}; {call}"],
        cwd=PLUGINS,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def answered_alone(call: str, environment: Mapping[str, str]) -> Any:
    """The answer of a unit that is run so, which prints it and nothing else."""
    ended = run_alone(call, environment)
    assert (ended.returncode, ended.stderr) == (0, "")
    return ast.literal_eval(ended.stdout)
