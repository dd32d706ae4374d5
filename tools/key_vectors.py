"""Judges vectors of placement keys: nodes and keys are spelled out, and every step has an answer."""

import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from ovirt_placement.model import PlacementKey, Snapshot
from ovirt_placement.model.record import NODE, STICKY
from ovirt_placement.rules.placement_keys.hierarchy import compile_keys, keys_by_resource
from ovirt_placement.rules.placement_keys.host_table import copies_after_start, sticky_keys
from ovirt_placement.rules.placement_keys.judgement import KeyDecision, KeyFailure, Score, thresholds
from ovirt_placement.rules.placement_keys.keys import KeySettings, number, validate
from tests.placement.rules.placement_keys.nodes import NEW, Node, decide, node, world

_TOLERANCE = 1e-9

#: What vectors may call a level otherwise; "first disk", "NIC's offer" and the like are understood, too.
_OTHER_NAMES = {"be": "billing_entity", "sticky": STICKY}

Answer = Mapping[str, Any]


def judge(question: Mapping[str, Any]) -> str | None:
    """What is wrong with our answer; only what a vector expects is compared."""
    answer = _OPERATIONS[question.get("op", "place")](question)
    for part, wanted in question["expected"].items():
        if not _same(part, answer[part], wanted):
            return f"{part} {answer[part]!r} instead of {wanted!r}"
    return None


def settings_of(question: Mapping[str, Any]) -> KeySettings:
    given = question.get("config", {})
    chosen: dict[str, Any] = {name: _exact(given[name]) for name in ("initial", "final") if name in given}
    chosen |= {name: given[name] for name in ("steps", "reserved_from_vms") if name in given}
    if "overhead_mib" in given:
        chosen["overhead_mb"] = given["overhead_mib"]
    return KeySettings(**chosen)


def _compile(question: Mapping[str, Any]) -> Answer:
    compiled = compile_keys(_keys(question["vm"]))
    return {
        kind: {name: [key.value, key.weight] for name, key in getattr(compiled, kind).items()}
        for kind in ("system", "customer")
    }


def _place(question: Mapping[str, Any]) -> Answer:
    config, vm = question.get("config", {}), question["vm"]
    source, disk_node = vm.get("current_node"), vm.get("disk_node")
    local = config.get("local_storage", False) and disk_node is not None
    nodes = (_node(one, vm) for one in question["nodes"])
    snapshot = world(nodes, _keys(vm), vm["ram_mib"], on=source, local_storage=local)
    names = [one["name"] for one in question["nodes"]]
    if local:  # a VM on a disk of its host is offered that host alone, and only if it is up
        names = [name for name in names if name == disk_node and snapshot.host_by_id[name].up]
    elif not config.get("allow_current", False):
        names = [name for name in names if name != source]
    decision = decide(snapshot, names, settings_of(question))
    return _steps(decision) | {
        "failed": decision.failed if names else KeyFailure.CONSTRAINT,
        "sticky_after": {host: _sticky_after(snapshot, host, source) for host in decision.choice},
    }


def _steps(decision: KeyDecision) -> dict[str, Any]:
    by_host = {one.host: one for one in decision.hosts}
    scored = {host: one.system for host, one in by_host.items() if one.system is not None}
    left = {host: one.customer for host, one in by_host.items() if host in decision.candidates}
    wanted = {host: score for host, score in left.items() if score is not None}
    return {
        "constraint": [one.host for one in decision.hosts if not one.shortages] or list(decision.choice),
        "special": _special(decision),
        "system_proximities": {host: _proximities(score) for host, score in scored.items()},
        "system_scores": {host: score.total for host, score in scored.items()},
        "round": decision.round,
        "threshold": None if decision.round is None else decision.thresholds[decision.round - 1],
        "candidates": list(decision.candidates),
        "customer_proximities": {host: _proximities(score) for host, score in wanted.items()},
        "customer_scores": {host: score.total for host, score in wanted.items()},
        "choice": list(decision.choice),
    }


def _special(decision: KeyDecision) -> dict[str, dict[str, Fraction]]:
    """What each host asked about computes for its own keys."""
    judged = decision.judgement
    if judged is None:
        return {}
    return {
        judged.table.ids[place]: {
            name: Fraction(*share) for name, share in judged.table.capacities[place].shares.ratios.items()
        }
        for place in judged.places
    }


def _sticky_after(snapshot: Snapshot, host: str, source: str | None) -> dict[str, list[float]]:
    """The copies that the VM has on a host: a start takes those of the host along, a migration does not."""
    copies = snapshot.sticky_copies
    if source is None:
        copies = copies_after_start(
            NEW, copies, sticky_keys(keys_by_resource(snapshot).get((NODE, host), ()))
        )
    return {copy.name: [copy.value, copy.weight] for copy in copies}


def _node(given: Mapping[str, Any], vm: Mapping[str, Any]) -> Node:
    """A host of a vector, which reports the VM's present one what is taken and free there without it."""
    held_mb = vm["ram_mib"] if given["name"] == vm.get("current_node") else 0
    return node(
        given["name"],
        [_key(NODE, key, given["name"]) for key in given["keys"]],
        [there["frozen"] for there in given["running"] if there["vm"] != vm["id"]],
        up=given["state"] == "running",
        memory_mb=given["ram_mib"],
        memory_ratio=_exact(given["ram_ratio"]),
        allocated_mb=given["ram_allocated_mib"],
        free_mb=given["free_ram_mib"] - held_mb,
        cpus=given["pcpus"],
        cpu_ratio=_exact(given["cpu_ratio"]),
        allocated_vcpus=given["vcpus_allocated"],
        load=_exact(given["load"]),
    )


def _keys(vm: Mapping[str, Any]) -> list[PlacementKey]:
    return [_key(level, key) for level, keys in vm.get("keys", {}).items() for key in keys]


def _key(level: str, key: Mapping[str, Any], resource: str = NEW) -> PlacementKey:
    return PlacementKey(
        level=_level(level),
        resource=resource,
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


def _proximities(score: Score) -> list[tuple[str, Fraction]]:
    return [(match.name, match.proximity) for match in score.matches for _ in range(match.count)]


def _exact(written: float | str) -> Fraction:
    found = number(written)
    assert found is not None, f"{written!r} is no number"
    return found


def _same(part: str, answer: Any, wanted: Any) -> bool:
    if part in {"system_proximities", "customer_proximities"}:
        mine, theirs = ({host: sorted(pairs) for host, pairs in one.items()} for one in (answer, wanted))
        return _alike(mine, theirs)
    if part == "special":
        answer = {host: {name: answer[host].get(name) for name in asked} for host, asked in wanted.items()}
        return _alike(answer, wanted)
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
        return abs(Fraction(answer) - _exact(wanted)) <= _TOLERANCE
    return bool(answer == wanted)


_OPERATIONS: Mapping[str, Callable[[Mapping[str, Any]], Answer]] = {
    "place": _place,
    "compile": _compile,
    "thresholds": lambda question: {"thresholds": thresholds(settings_of(question))},
    "validate": lambda question: {
        "errors": [[str(code) for code in validate(_key(level, key))] for level, key in question["keys"]]
    },
}
