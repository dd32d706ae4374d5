"""Judges vectors of placement keys: nodes and keys are spelled out, and every step has an answer."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import Any

from ovirt_placement.model import PlacementKey, StickyCopy
from ovirt_placement.model.key_levels import STICKY
from ovirt_placement.rules.placement_keys.capacity import Capacity
from ovirt_placement.rules.placement_keys.compile import CompiledKey, compile_keys
from ovirt_placement.rules.placement_keys.decision import Decision, HostState, decide, decide_local
from ovirt_placement.rules.placement_keys.exact import number
from ovirt_placement.rules.placement_keys.keys import is_special, validate
from ovirt_placement.rules.placement_keys.node_keys import node_keys
from ovirt_placement.rules.placement_keys.rounds import thresholds
from ovirt_placement.rules.placement_keys.score import Score
from ovirt_placement.rules.placement_keys.settings import Settings
from ovirt_placement.rules.placement_keys.sticky import copies_after_start
from tests.conformance.vector import Vector

_TOLERANCE = 1e-9

#: What vectors may call a level otherwise; "first disk", "NIC's offer" and the like are understood, too.
_OTHER_NAMES = {"be": "billing_entity", "sticky": STICKY}

Answer = Mapping[str, Any]


def judge(vector: Vector) -> str | None:
    """What is wrong with our answer; only what a vector expects is compared."""
    question = vector.content
    answer = _OPERATIONS[question.get("op", "place")](question)
    for part, wanted in question["expected"].items():
        if not _same(part, answer[part], wanted):
            return f"{part} {answer[part]!r} instead of {wanted!r}"
    return None


def settings_of(question: Mapping[str, Any]) -> Settings:
    given = question.get("config", {})
    chosen: dict[str, Any] = {name: _exact(given[name]) for name in ("initial", "final") if name in given}
    chosen |= {name: given[name] for name in ("steps", "reserved_from_vms") if name in given}
    if "overhead_mib" in given:
        chosen["overhead_mb"] = given["overhead_mib"]
    return Settings(**chosen)


def _thresholds(question: Mapping[str, Any]) -> Answer:
    return {"thresholds": thresholds(settings_of(question))}


def _validate(question: Mapping[str, Any]) -> Answer:
    return {"errors": [[str(code) for code in validate(_key(level, key))] for level, key in question["keys"]]}


def _compile(question: Mapping[str, Any]) -> Answer:
    compiled = compile_keys(_keys(question["vm"]))
    return {"system": _pairs(compiled.system), "customer": _pairs(compiled.customer)}


def _place(question: Mapping[str, Any]) -> Answer:
    settings, config, vm = settings_of(question), question.get("config", {}), question["vm"]
    source = vm.get("current_node")
    nodes = [
        node for node in question["nodes"] if config.get("allow_current", False) or node["name"] != source
    ]
    states = [_host_state(node, vm, settings) for node in nodes]
    keys = compile_keys(_keys(vm))
    if config.get("local_storage", False) and vm.get("disk_node") is not None:
        decision = decide_local(keys, states, vm["disk_node"])
    else:
        decision = decide(keys, vm["ram_mib"], states, settings)
    return _steps(decision, states) | {"sticky_after": _sticky_after(vm, decision, states, source)}


def _steps(decision: Decision, states: Iterable[HostState]) -> dict[str, Any]:
    scored = {one.host: one.system for one in decision.hosts if one.system is not None}
    wanted = {
        one.host: one.customer
        for one in decision.hosts
        if one.host in decision.candidates and one.customer is not None
    }
    return {
        "constraint": [one.host for one in decision.hosts if not one.room.shortages] or list(decision.choice),
        "special": {state.id: _special(state) for state in states},
        "system_proximities": {host: _proximities(score) for host, score in scored.items()},
        "system_scores": {host: score.total for host, score in scored.items()},
        "round": decision.round,
        "threshold": None if decision.round is None else decision.thresholds[decision.round - 1],
        "candidates": list(decision.candidates),
        "customer_proximities": {host: _proximities(score) for host, score in wanted.items()},
        "customer_scores": {host: score.total for host, score in wanted.items()},
        "choice": list(decision.choice),
        "failed": decision.failed,
    }


def _sticky_after(
    vm: Mapping[str, Any], decision: Decision, states: Iterable[HostState], source: str | None
) -> Answer:
    before = [
        StickyCopy(vm=vm["id"], name=key["name"], value=key["value"], weight=key["weight"])
        for level, keys in vm.get("keys", {}).items()
        for key in keys
        if _level(level) == STICKY
    ]
    after = {}
    for state in states:
        if state.id in decision.choice:
            started = copies_after_start(vm["id"], before, state.keys.sticky) if source is None else before
            after[state.id] = {copy.name: [copy.value, copy.weight] for copy in started}
    return after


def _host_state(node: Mapping[str, Any], vm: Mapping[str, Any], settings: Settings) -> HostState:
    capacity = Capacity(
        up=node["state"] == "running",
        memory_mb=node["ram_mib"],
        memory_ratio=_exact(node["ram_ratio"]),
        cpu_ratio=_exact(node["cpu_ratio"]),
        allocated_mb=node["ram_allocated_mib"],
        allocated_vcpus=node["vcpus_allocated"],
        cpus=node["pcpus"],
        free_mb=node["free_ram_mib"],
        load=_exact(node["load"]),
    )
    frozen = [
        tuple((name, value) for name, value in there["frozen"])
        for there in node["running"]
        if there["vm"] != vm["id"]
    ]
    own = [_key("node", key) for key in node["keys"]]
    keys = node_keys(own, capacity, frozen, reserved_from_vms=settings.reserved_from_vms)
    return HostState(node["name"], capacity, keys)


def _keys(vm: Mapping[str, Any]) -> list[PlacementKey]:
    return [_key(level, key) for level, keys in vm.get("keys", {}).items() for key in keys]


def _key(level: str, key: Mapping[str, Any]) -> PlacementKey:
    return PlacementKey(
        level=_level(level),
        resource="resource",
        key_class=key.get("class", "system"),
        name=key["name"],
        value=key.get("value", ""),
        weight=key.get("weight"),
        sticky=bool(key.get("sticky")),
    )


def _level(name: str) -> str:
    """A level as we call it. What is none stays what it is: keys there have no effect."""
    words = [word.removesuffix("'s") for word in re.split(r"[\s_-]+", name.lower())]
    plain = "_".join(word for word in words if word not in {"first", "product", "the", "that"})
    return _OTHER_NAMES.get(plain, plain)


def _pairs(compiled: Mapping[str, CompiledKey]) -> dict[str, list[Fraction]]:
    return {name: [key.value, key.weight] for name, key in compiled.items()}


def _special(host: HostState) -> dict[str, Fraction]:
    values = ((name, found) for name, found in host.keys.system.items() if is_special(name))
    return {name: Fraction(*share) for name, ((share, _),) in values}


def _proximities(score: Score) -> list[tuple[str, Fraction]]:
    return [(match.key.name, match.proximity) for match in score.matches for _ in range(match.count)]


def _exact(written: float | str) -> Fraction:
    found = number(written)
    assert found is not None, f"{written!r} is no number"
    return found


def _same(part: str, answer: Any, wanted: Any) -> bool:
    if part in {"system_proximities", "customer_proximities"}:
        return _alike(
            {host: sorted(pairs) for host, pairs in answer.items()},
            {host: sorted(pairs) for host, pairs in wanted.items()},
        )
    if part == "special":
        asked = {host: dict(values) for host, values in wanted.items()}
        return all(
            _alike({name: answer[host].get(name) for name in asked[host]}, asked[host]) for host in asked
        )
    if part == "errors":
        return [sorted(codes) for codes in answer] == [sorted(codes) for codes in wanted]
    return _alike(answer, wanted)


def _alike(answer: Any, wanted: Any) -> bool:
    """Equal, numbers within a small tolerance, lists in their order."""
    if isinstance(wanted, Mapping):
        return answer.keys() == wanted.keys() and all(_alike(answer[key], wanted[key]) for key in wanted)
    if isinstance(wanted, list):
        return len(answer) == len(wanted) and all(map(_alike, answer, wanted))
    if isinstance(wanted, int | float) and isinstance(answer, int | float | Fraction):
        return abs(answer - _exact(wanted)) <= _TOLERANCE
    return bool(answer == wanted)


_OPERATIONS: Mapping[str, Callable[[Mapping[str, Any]], Answer]] = {
    "place": _place,
    "compile": _compile,
    "thresholds": _thresholds,
    "validate": _validate,
}
