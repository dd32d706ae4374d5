"""Every kind of answer once, and the JSON Schema of all of them."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import Any

import msgspec

from ovirt_placement.answers.conflicts import ConflictsDocument
from ovirt_placement.answers.decisions.at_time import DecisionsAtDocument
from ovirt_placement.answers.decisions.decision import LastDecisionsDocument
from ovirt_placement.answers.decisions.refused import RefusedPlacementsDocument
from ovirt_placement.answers.doctor.examination import DoctorDocument
from ovirt_placement.answers.groups.change import (
    GroupChangeDocument,
    GroupsChangeDocument,
    GroupsForgottenDocument,
    GroupsLostDocument,
)
from ovirt_placement.answers.groups.listing import GroupsListDocument
from ovirt_placement.answers.ha_check import HaCheckDocument
from ovirt_placement.answers.keys.change import KeysChangeDocument
from ovirt_placement.answers.keys.compiled import KeysExplainDocument, KeysOfHostDocument, KeysOfVmDocument
from ovirt_placement.answers.keys.listing import KeysCheckDocument, KeysListDocument
from ovirt_placement.answers.orders import (
    ApprovalChangeDocument,
    MaintenanceChangeDocument,
    MaintenanceRunsDocument,
    PausesChangeDocument,
    RefusalChangeDocument,
    StoreChangeDocument,
)
from ovirt_placement.answers.placement import ViolationsDocument, WhereDocument, WhyDocument
from ovirt_placement.answers.rules import RulesChangeDocument, RulesCheckDocument, RulesListDocument
from ovirt_placement.answers.setup.answer import SetupDocument
from ovirt_placement.answers.status.health import StatusDocument
from ovirt_placement.answers.status.history import HistoryDocument, TrendDocument
from ovirt_placement.answers.what_if import WhatIfDocument

DOCUMENTS = (
    StatusDocument,
    WhyDocument,
    LastDecisionsDocument,
    DecisionsAtDocument,
    RefusedPlacementsDocument,
    WhereDocument,
    ViolationsDocument,
    ConflictsDocument,
    HaCheckDocument,
    GroupsListDocument,
    GroupChangeDocument,
    GroupsChangeDocument,
    GroupsLostDocument,
    GroupsForgottenDocument,
    KeysListDocument,
    KeysCheckDocument,
    KeysOfVmDocument,
    KeysOfHostDocument,
    KeysExplainDocument,
    KeysChangeDocument,
    RulesListDocument,
    RulesCheckDocument,
    RulesChangeDocument,
    SetupDocument,
    DoctorDocument,
    WhatIfDocument,
    HistoryDocument,
    TrendDocument,
    MaintenanceRunsDocument,
    MaintenanceChangeDocument,
    PausesChangeDocument,
    ApprovalChangeDocument,
    RefusalChangeDocument,
    StoreChangeDocument,
)


def schema(others: Iterable[type] = ()) -> dict[str, Any]:
    """The JSON Schema that every answer meets; its `kind` says which of the definitions.

    It also defines what others print, who have no kinds.
    """
    roots, components = msgspec.json.schema_components((*DOCUMENTS, *others), ref_template="#/$defs/{name}")
    for component in components.values():
        if "description" in component:  # Python 3.13 takes the indentation out of docstrings by itself
            component["description"] = inspect.cleandoc(component["description"])
    for document in DOCUMENTS:
        components[document.__name__]["required"][1:1] = ["version", "as_of", "age_seconds"]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Answers of ovirt-placement --json",
        "oneOf": list(roots[: len(DOCUMENTS)]),
        "$defs": components,
    }
