"""A cluster with one rule to repair, and what the gates say when a step towards that is asked for."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from ovirt_enforcer.gates.admission import Admitted, Closed, Gates
from ovirt_enforcer.gates.gate import Facts, HostAction
from ovirt_enforcer.settings import EnforcerSettings, Mode
from ovirt_placement.model import Snapshot
from ovirt_placement.planning.plan import Plan, Step
from ovirt_placement.store.enforcer.intents import Intent, IntentState
from tests.builders import APART, CLUSTER, Part, group, host, snapshot, vm

ENFORCE = EnforcerSettings(mode=Mode.ENFORCE)
PARTS = (host("h1"), host("h2"), vm("a", "h1"), vm("b", "h1"), group("g", APART, "a b"))
NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


def step(vms: str = "a", source: str = "h1", target: str = "h2", groups: str = "g", **fields: Any) -> Step:
    """A step that moves VMs from one host and repairs groups; several are given with spaces between them."""
    moved, repaired = tuple(vms.split()), tuple(groups.split())
    defaults: dict[str, Any] = {"groups": repaired, "repairs": repaired}
    return Step(vms=moved, sources=(source,) * len(moved), target=target, **{**defaults, **fields})


def plan(*steps: Step) -> Plan:
    return Plan(cluster=CLUSTER, strategy="by hand", steps=steps)


#: What repairs the rule of `PARTS`.
STEP = step()


def intent(
    state: IntentState, age: float, vm_id: str = "a", error: str | None = "it broke", **fields: Any
) -> Intent:
    """A migration that ended this many seconds ago, and took no time."""
    defaults: dict[str, Any] = {
        "id": 1,
        "cluster": CLUSTER,
        "source": "h1",
        "target": "h2",
        "memory_mb": None,
        "correlation_id": f"{vm_id} {age}",
        "created": 0.0,
        "updated": 0.0,
    }
    return Intent(vm=vm_id, state=state, age_seconds=age, error=error, **{**defaults, **fields})


def gates(
    settings: EnforcerSettings = ENFORCE,
    under_way: Sequence[Intent] = (),
    now: datetime = NOON,
    **remembered: Any,
) -> Gates:
    return Gates(Facts(settings, now, under_way, **remembered))


def admitted(
    asked: Gates,
    *parts: Part,
    of: Step | HostAction = STEP,
    within: Plan | None = None,
    state: Snapshot | None = None,
) -> Admitted:
    """What is admitted in this state, or this world, or in `PARTS`."""
    return asked.admit(state or snapshot(*(parts or PARTS)), CLUSTER, of, within)


def answer(asked: Gates, *parts: Part, **what: Any) -> tuple[str, str] | None:
    """The name and the reason of the gate that is closed there; None if the step is admitted."""
    try:
        admitted(asked, *parts, **what)
    except Closed as found:
        return found.gate, str(found)
    return None


def closed(asked: Gates, *parts: Part, **what: Any) -> tuple[str, str]:
    found = answer(asked, *parts, **what)
    assert found is not None
    return found
