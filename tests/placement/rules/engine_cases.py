"""States on which the engine's own classes were run, each with the question and their answer."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ovirt_placement.model import Snapshot, state_file
from ovirt_placement.rules.verdict import Request
from tests.paths import DATA

FOLDER = DATA / "engine-cases"
#: What stands next to the state: the question, and who answered what.
_ALONGSIDE = {"name", "engine_class", "request", "engine", "product", "simulator"}


@dataclass(frozen=True)
class EngineCase:
    """One state of the folder."""

    whole: dict[str, Any]

    @classmethod
    def named(cls, name: str) -> EngineCase:
        return cls(json.loads((FOLDER / f"{name}.json").read_text()))

    @cached_property
    def snapshot(self) -> Snapshot:
        state = {key: value for key, value in self.whole.items() if key not in _ALONGSIDE}
        return state_file.loads(json.dumps(state).encode())

    @property
    def asked(self) -> dict[str, Any]:
        return dict(self.whole["request"])

    @property
    def request(self) -> Request:
        vms = tuple(self.asked["vms"])
        cluster = self.snapshot.cluster_by_id[self.snapshot.vm_by_id[vms[0]].cluster]
        hosts = tuple(self.asked["candidate_hosts"])
        return Request(vms, hosts, parameters=cluster.scheduling_properties)

    @property
    def answer(self) -> Any:
        """What the engine's class said."""
        return self.whole["engine"]


def names() -> list[str]:
    return sorted(path.stem for path in Path(FOLDER).glob("*.json"))


def tiers(scores: dict[str, int]) -> list[list[str]]:
    """Hosts by their weights, the best first; those that tie together."""
    return [sorted(host for host in scores if scores[host] == score) for score in sorted({*scores.values()})]
