"""Answers of the engine, recorded as vectors, against the simulator's filters, weights and conflicts."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from ovirt_placement.model import Snapshot
from ovirt_simulator.scheduler import filters, weights
from tests.paths import VECTORS
from tests.simulator.core import engines


def vectors(*kinds: str) -> list[Any]:
    paths = [path for kind in kinds for path in sorted(VECTORS.glob(f"{kind}--*.json"))]
    return [pytest.param(json.loads(path.read_text()), id=path.stem) for path in paths]


def state(vector: dict[str, Any]) -> Snapshot:
    return msgspec.convert({k: vector[k] for k in vector if k in Snapshot.__struct_fields__}, Snapshot)


FILTERS = {"vm_affinity_filter": filters.vm_affinity, "vm_to_host_filter": filters.vm_to_host}
WEIGHTS = {
    "vm_affinity_weight": weights.vm_affinity,
    "vm_to_host_weight": weights.vm_to_host,
    "ha_weight": weights.ha_reservation,
}


@pytest.mark.parametrize("vector", vectors(*FILTERS))
def test_filters_accept_the_hosts_that_the_engine_accepts(vector: dict[str, Any]) -> None:
    snapshot = state(vector)
    vms = [snapshot.vm_by_id[i] for i in vector["request"]["vms"]]
    hosts = [snapshot.host_by_id[i] for i in vector["request"]["candidate_hosts"]]
    refused = FILTERS[vector["kind"]](snapshot, vms, hosts)
    assert {h.id for h in hosts} - set(refused) == set(vector["expected"]["hosts"])
    assert all(refused.values())


@pytest.mark.parametrize("vector", vectors(*WEIGHTS))
def test_weights_order_hosts_as_the_engine_does(vector: dict[str, Any]) -> None:
    snapshot = state(vector)
    vms = [snapshot.vm_by_id[i] for i in vector["request"]["vms"]]
    hosts = [snapshot.host_by_id[i] for i in vector["request"]["candidate_hosts"]]
    found = WEIGHTS[vector["kind"]](snapshot, vms, hosts)
    tiers = [sorted(h for h in found if found[h] == w) for w in sorted(set(found.values()))]
    assert tiers == [sorted(tier) for tier in vector["expected"]["tiers"]]


@pytest.mark.parametrize("vector", vectors("rank_selector"))
def test_rank_selector_prefers_the_hosts_that_the_engine_prefers(vector: dict[str, Any]) -> None:
    records = [
        weights.Record(entry["unit"], entry["host"], entry["weight"])
        for entry in vector["request"]["weights"]
    ]
    factors = {unit["id"]: unit["factor"] for unit in vector["request"]["units"]}
    best = weights.best_host([host["id"] for host in vector["hosts"]], records, factors)
    assert best in vector["expected"]["best_any_of"]


@pytest.mark.parametrize("vector", vectors("conflicts"))
def test_conflicts_are_those_that_the_engine_finds(vector: dict[str, Any]) -> None:
    found = engines.conflicts(engines.backend(state(vector)).state)
    assert found == vector["expected"]["conflicts"]
