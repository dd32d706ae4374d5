"""The order of the engine's own enforcement, recorded as vectors, against the simulated engine's."""

from __future__ import annotations

from typing import Any

import pytest

from ovirt_simulator.scheduler.external import ExternalUnits
from ovirt_simulator.scheduler.placing import AffinityEnforcement, Scheduler, candidates
from tests.simulator.core import engines
from tests.simulator.scheduler.test_vectors import state, vectors

#: The simulated engine leaves soft groups alone.
HARD = [param for param in vectors("enforcer_candidates") if "--soft-" not in str(param.id)]


@pytest.mark.parametrize("vector", HARD)
def test_candidates_come_in_the_engines_order(vector: dict[str, Any]) -> None:
    backend = engines.backend(state(vector))
    enforcement = AffinityEnforcement(backend, Scheduler(backend, ExternalUnits(backend, None)), refuse)
    cluster = backend.state.clusters[vector["request"]["cluster"]]
    schedulable = vector["request"].get("schedulable")

    def can_leave(vm_id: str) -> bool:
        if schedulable is None:
            return enforcement.can_leave(vm_id, cluster.id)
        here = backend.state.vms[vm_id]
        return here.movable and bool(set(schedulable.get(vm_id, schedulable["*"])) - {here.host})

    found = [
        i
        for i in dict.fromkeys(vm.id for vm in candidates(backend.state, cluster, backend.random.shuffle))
        if can_leave(i)
    ]
    tiers = vector["expected"]["tiers"]
    if tiers is None:
        assert sorted(found) == sorted(vector["expected"]["members"])
        return
    rest = found
    for tier in tiers:
        assert sorted(rest[: len(tier)]) == sorted(tier)
        rest = rest[len(tier) :]
    assert rest == []


def refuse(*_: Any, **__: Any) -> Any:
    raise AssertionError("nothing is migrated here")
