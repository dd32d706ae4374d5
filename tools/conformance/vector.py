"""Reads a vector: a cluster state with a question and the engine's answer to it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ovirt_placement.model import Snapshot
from ovirt_placement.model.files import state_file

#: What a vector adds to a state file.
_OWN_KEYS = frozenset(
    {
        "name",
        "kind",
        "origin",
        "source",
        "notes",
        "request",
        "expected",
        "recommended",
        "may_differ",
        "engine_exception",
    }
)


@dataclass(frozen=True)
class Vector:
    name: str
    kind: str
    content: dict[str, Any]

    @cached_property
    def snapshot(self) -> Snapshot:
        return state_file.loads(json.dumps(self.state).encode())

    @property
    def state(self) -> dict[str, Any]:
        """The content of the state file that the question is about."""
        return {key: value for key, value in self.content.items() if key not in _OWN_KEYS}

    @property
    def request(self) -> dict[str, Any]:
        return dict(self.content["request"])

    @property
    def vms(self) -> tuple[str, ...]:
        return tuple(self.request["vms"])

    @property
    def hosts(self) -> tuple[str, ...]:
        return tuple(self.request["candidate_hosts"])

    @property
    def parameters(self) -> dict[str, str]:
        """Those of the unit that the request carries: the engine counts VMs."""
        scale_down = self.request.get("scale_down")
        scaled = {} if scale_down is None else {"ha_weight_scale_down": str(scale_down)}
        return {"ha_measure": "vms", **scaled}

    @property
    def right_answer(self) -> dict[str, Any]:
        """The recommended answer where the engine's own is a bug, else the engine's."""
        return dict(self.content.get("recommended") or self.content["expected"])

    @property
    def ties_may_be_refined(self) -> bool:
        return "ties may be refined" in (self.content.get("may_differ") or "").lower()


def load(folder: Path) -> Iterator[Vector]:
    """All vectors of a folder and those below it, by path."""
    for path in sorted(folder.rglob("*.json")):
        content = json.loads(path.read_text())
        yield Vector(name=path.stem, kind=content.get("kind", path.parent.name), content=content)
