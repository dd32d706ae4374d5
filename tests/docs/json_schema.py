"""The JSON Schema of what all commands print with `--json`, as it follows from the types in the code."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, get_args

import msgspec

from ovirt_enforcer.cli.history import PlanDecided, UserActionDone
from ovirt_enforcer.history import WhyNot
from ovirt_enforcer.plans import PlansBack, RoomFound
from ovirt_enforcer.policy_simulation import Simulations
from ovirt_placement.answers import question
from ovirt_placement.answers.plans.maintenance import MaintenancePlans
from ovirt_placement.answers.plans.plan import Plans
from ovirt_placement.store.approvals import WaitingPlan
from ovirt_placement.store.enforcer.history import RecordedMigration
from ovirt_placement.store.pauses import Pause
from ovirt_scheduler_proxy.commands import ProxyCheck
from tests.docs.field_comments import comments

#: What has no kind: each command says by itself what it prints.
OTHERS = (
    Plans,
    PlansBack,
    RoomFound,
    MaintenancePlans,
    Simulations,
    PlanDecided,
    RecordedMigration,
    UserActionDone,
    WhyNot,
    WaitingPlan,
    Pause,
    ProxyCheck,
)


def schema() -> dict[str, Any]:
    """As `question.schema`, with the lists that the enforcer prints."""
    found = question.schema(OTHERS)
    for kind in _records((*question.documents(), *OTHERS)):
        _describe(found["$defs"].get(kind.__name__, {}), kind)
    found["title"] = "What ovirt-placement, ovirt-enforcer and ovirt-scheduler-proxy print with --json"
    found["$defs"] |= {
        "History": _list_of(PlanDecided, RecordedMigration, UserActionDone),
        "WaitingPlans": _list_of(WaitingPlan),
        "Pauses": _list_of(Pause),
    }
    return found


def schema_page() -> str:
    return json.dumps(schema(), indent=2) + "\n"


def _records(kinds: Iterable[Any]) -> Iterator[type[msgspec.Struct]]:
    """All records that these types are made of."""
    for kind in kinds:
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            yield kind
            yield from _records(field.type for field in msgspec.structs.fields(kind))
        yield from _records(get_args(kind))


def _describe(definition: dict[str, Any], kind: type[msgspec.Struct]) -> None:
    """Let each property say what stands in the comment above its field."""
    said = comments(kind)
    for field in msgspec.structs.fields(kind):
        if field.name in said and field.encode_name in definition.get("properties", {}):
            definition["properties"][field.encode_name]["description"] = said[field.name]


def _list_of(*kinds: type) -> dict[str, Any]:
    items = [{"$ref": f"#/$defs/{kind.__name__}"} for kind in kinds]
    return {"type": "array", "items": items[0] if len(items) == 1 else {"anyOf": items}}
