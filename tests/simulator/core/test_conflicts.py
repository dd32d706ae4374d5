"""The engine's conflict checks, recorded as vectors, against the simulated engine's."""

from __future__ import annotations

from typing import Any

import pytest

from ovirt_simulator.core import loading
from ovirt_simulator.core.affinity import find_conflicts, flat
from ovirt_simulator.core.backend import Backend
from ovirt_simulator.core.settings import PROMPT
from tests.simulator.core.engines import EVENT_NAMES, START
from tests.simulator.scheduler.test_vectors import state, vectors


@pytest.mark.parametrize("vector", vectors("conflicts"))
def test_conflicts_are_those_that_the_engine_finds(vector: dict[str, Any]) -> None:
    backend = Backend(clock=START, seed=0, settings=PROMPT, background=lambda action: action())
    loading.load(backend.state, state(vector), START)
    groups = [flat(backend.state, group) for group in backend.state.groups.values()]
    found = [
        {
            "type": EVENT_NAMES[conflict.code],
            "groups": sorted(conflict.groups),
            "vms": sorted(conflict.vms),
            "hosts": sorted(conflict.hosts),
            "negative_vms": sorted(conflict.negative_vms),
            "savable": conflict.savable,
        }
        for conflict in find_conflicts(groups)
    ]
    assert found == vector["expected"]["conflicts"]
