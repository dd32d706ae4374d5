"""A question about a state: what our copies are asked, and, as one line of JSON, the engine's own classes."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from ovirt_placement.model import Snapshot, state_file
from tools.engine_conformance.states import State


@dataclass(frozen=True)
class Question:
    """`kind` and `request` are as `tools/engine_conformance/java` takes them."""

    kind: str
    state: State
    request: dict[str, Any]

    @cached_property
    def snapshot(self) -> Snapshot:
        return state_file.loads(json.dumps(self.state).encode())

    @property
    def hosts(self) -> tuple[str, ...]:
        return tuple(self.request["candidate_hosts"])

    @property
    def vms(self) -> tuple[str, ...]:
        return tuple(self.request["vms"])

    def line(self) -> str:
        """As the engine's side reads it; `told` is what the state file has no words for, by host or VM."""
        told = self.request.get("told", {})
        lists = {
            name: [{**one, **told.get(one["id"], {})} for one in self.state[name]]
            for name in ("hosts", "vms")
        }
        return json.dumps({"kind": self.kind, "request": self.request, **self.state, **lists})

    def about(self, state: State) -> Question:
        """The same question about another state."""
        return replace(self, state=state)
