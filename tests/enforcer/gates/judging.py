"""A cluster with one rule to mend, and what the gates say when a step towards that is asked for."""

from __future__ import annotations

import pytest

from ovirt_enforcer.gates.admission import Admitted, Closed, Gates
from ovirt_enforcer.planning.planner import make_plan
from ovirt_enforcer.settings import EnforcerSettings, Mode
from ovirt_placement.store.intents import Intent, IntentState
from tests.builders import APART, CLUSTER, Part, group, host, snapshot, vm

ENFORCE = EnforcerSettings(mode=Mode.ENFORCE)
PARTS = (host("h1"), host("h2"), vm("a", "h1"), vm("b", "h1"), group("g", APART, "a b"))


def intent(state: IntentState, age: float, vm_id: str = "a", error: str | None = "it broke") -> Intent:
    return Intent(
        id=1,
        vm=vm_id,
        cluster=CLUSTER,
        source="h1",
        target="h2",
        memory_mb=None,
        correlation_id="id",
        state=state,
        created=0.0,
        updated=0.0,
        age_seconds=age,
        error=error,
    )


def admitted(gates: Gates, *parts: Part) -> Admitted:
    """What is admitted in this world, of a plan that was made for `PARTS`."""
    return gates.admit(snapshot(*(parts or PARTS)), make_plan(snapshot(*PARTS), CLUSTER))


def closed(gates: Gates, *parts: Part) -> tuple[str, str]:
    """The name and the reason of the gate that is closed there."""
    with pytest.raises(Closed) as caught:
        admitted(gates, *parts)
    return caught.value.gate, str(caught.value)
