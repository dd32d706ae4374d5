"""Publishes snapshots as the inventory does, for units that run in processes of their own."""

from __future__ import annotations

import os
from pathlib import Path

from ovirt_placement.inventory.published import publication
from ovirt_placement.inventory.published.publication import Moments
from ovirt_placement.inventory.published.writer import Writer
from ovirt_placement.model import Snapshot

#: Nothing of the past counts: each question of a test is one by itself.
WITHOUT_PAST = "expected_seconds = 0.000001"
#: What is published here stays fresh for the whole test.
_FOREVER_SECONDS = 10**9


class Publisher:
    """A folder with a configuration and the snapshot that every reader of it will find."""

    def __init__(self, folder: Path, *, inventory: str = "") -> None:
        """Further lines of `inventory` go into that section of the configuration."""
        self._writer = Writer(folder)
        self.config = folder / "ovirt-placement.toml"
        self.config.write_text(
            f'[inventory]\ndirectory = "{folder}"\nmax_age_seconds = {_FOREVER_SECONDS}\n{inventory}\n'
            f'[store]\nurl = "sqlite:///{folder}/store.db"\npatience_seconds = 30.0\n'
        )
        #: What a process needs to find it.
        self.environment = {**os.environ, "OVIRT_PLACEMENT_CONFIG": str(self.config)}

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
        for trace in () if same_story else self.config.parent.glob("expected/*"):
            trace.unlink()
        now = publication.now()
        keys_at = float("-inf") if keys_ago is None else now - keys_ago
        self._writer.publish(snapshot, Moments(now - seconds_ago, store_asked_at=now, keys_at=keys_at))
