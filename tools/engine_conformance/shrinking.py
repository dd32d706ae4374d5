"""Makes the state of a difference as small as it can be while the difference stays."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from ovirt_placement.model import state_file
from ovirt_service.errors import UserError
from tools.engine_conformance.question import Question
from tools.engine_conformance.states import State

_LISTS = ("pending", "affinity_groups", "affinity_labels", "vms", "hosts", "clusters")
#: What a plain state has in the fields that are not given their plainest value one by one.
_PLAIN: dict[str, tuple[tuple[str, Any], ...]] = {
    "clusters": (
        ("compatibility", "4.7"),
        ("count_threads_as_cores", False),
        ("upgrade_mode", False),
        ("ha_reservation", False),
        ("scheduling_properties", {}),
    ),
    "hosts": (
        ("status", "up"),
        ("cpu_percent", 20),
        ("cores", 4),
        ("threads", None),
        ("free_mb", 8192),
        ("memory_free_mb", None),
        ("swap_free_mb", None),
        ("free_huge_pages", {}),
        ("spm", False),
    ),
    "vms": (
        ("status", "up"),
        ("memory_mb", 1024),
        ("guaranteed_mb", 1024),
        ("usage_mem_percent", 50),
        ("usage_cpu_percent", 10),
        ("vcpus", 1),
        ("ha", False),
        ("migratable", True),
        ("hosted_engine", False),
        ("pinned_hosts", []),
        ("io_threads", 0),
        ("video_mb", 16),
        ("custom_properties", {}),
        ("threads_per_core", 1),
        ("architecture", "x86_64"),
    ),
    "affinity_groups": (
        ("priority", 1.0),
        ("vms", []),
        ("hosts", []),
        ("vm_labels", []),
        ("host_labels", []),
    ),
    "affinity_labels": (("vms", []), ("hosts", []), ("implicit", False)),
}


def shrink(question: Question, differs: Callable[[Question], bool]) -> Question:
    """The smallest question that still differs, by leaving out and by making plain while that helps."""
    while True:
        smaller = next((one for one in _smaller(question) if _stands(one, differs)), None)
        if smaller is None:
            return question
        question = smaller


def _stands(question: Question, differs: Callable[[Question], bool]) -> bool:
    if not all(question.request.get(name, [name]) for name in ("vms", "candidate_hosts", "hosts", "records")):
        return False
    cluster = question.request.get("cluster")
    if cluster is not None and all(one["id"] != cluster for one in question.state["clusters"]):
        return False
    try:
        state_file.loads(json.dumps(question.state).encode())
    except UserError:
        return False
    return differs(question)


def _smaller(question: Question) -> Iterator[Question]:
    yield from _fewer(question)
    yield from _plainer(question)


def _fewer(question: Question) -> Iterator[Question]:
    """Without one entry of a list, and without all that refers to it."""
    for name in _LISTS:
        for entry in question.state.get(name, ()):
            yield _without(question, name, entry)
    for name in ("candidate_hosts", "vms", "records", "units"):
        values = question.request.get(name, ())
        for at in range(len(values) if len(values) > 1 else 0):
            yield replace(question, request={**question.request, name: [*values[:at], *values[at + 1 :]]})


def _without(question: Question, name: str, entry: State) -> Question:
    state = {**question.state, name: [one for one in question.state[name] if one is not entry]}
    gone = entry.get("id")
    if gone is None:
        return question.about(state)
    request = {key: _lacking(value, gone) for key, value in question.request.items()}
    cleaned = {
        key: [_lacking(one, gone) for one in value if not isinstance(one, dict) or gone not in _owners(one)]
        if isinstance(value, list)
        else value
        for key, value in state.items()
    }
    return replace(question, state=cleaned, request=request)


def _owners(entry: State) -> list[str]:
    """What an entry cannot be without."""
    return [entry[key] for key in ("vm", "cluster") if key in entry] + (
        [entry["host"]] if "vm" in entry else []
    )


def _lacking(value: Any, gone: str) -> Any:
    if isinstance(value, list):
        return [one for one in value if one != gone]
    if isinstance(value, dict):
        return {
            key: _lacking(inner, gone)
            for key, inner in value.items()
            if key != gone and not _moves(key, inner, gone)
        }
    return value


def _moves(key: str, inner: Any, gone: str) -> bool:
    return key == "migrating_to" and inner == gone


def _plainer(question: Question) -> Iterator[Question]:
    for name, plain in _PLAIN.items():
        for at, entry in enumerate(question.state.get(name, ())):
            for key, value in plain:
                if key in entry and entry[key] != value:
                    yield _changed(question, name, at, {**entry, key: value})
            if name == "affinity_groups":
                yield from _simpler_rules(question, at, entry)
            if name == "vms" and entry["host"] is not None and "migrating_to" not in entry:
                yield _changed(question, name, at, {**entry, "host": None, "status": "down"})


def _simpler_rules(question: Question, at: int, group: State) -> Iterator[Question]:
    for rule in ("vms_rule", "hosts_rule"):
        off = {"enabled": False, "positive": False, "enforcing": False}
        if group[rule] != off:
            yield _changed(question, "affinity_groups", at, {**group, rule: off})
    for key in ("vms", "hosts", "vm_labels", "host_labels"):
        for each in group[key]:
            yield _changed(
                question, "affinity_groups", at, {**group, key: [one for one in group[key] if one != each]}
            )


def _changed(question: Question, name: str, at: int, entry: State) -> Question:
    entries = question.state[name]
    return question.about({**question.state, name: [*entries[:at], entry, *entries[at + 1 :]]})
