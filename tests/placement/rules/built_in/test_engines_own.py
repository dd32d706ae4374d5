"""The engine's own affinity filters against what the engine answered: all vectors, its bugs included."""

from __future__ import annotations

import pytest

from ovirt_placement.rules.built_in.affinity import filter_by_host_groups, filter_by_vm_groups
from tests.paths import VECTORS
from tools.conformance.kinds import request_of
from tools.conformance.vector import Vector, load

FILTERS = {"vm_affinity_filter": filter_by_vm_groups, "vm_to_host_filter": filter_by_host_groups}
ASKED = [vector for vector in load(VECTORS) if vector.kind in FILTERS]


def test_there_are_vectors() -> None:
    assert {vector.kind for vector in ASKED} == set(FILTERS)


@pytest.mark.parametrize("vector", ASKED, ids=lambda vector: str(vector.name))
def test_the_answer_is_the_engines_own(vector: Vector) -> None:
    verdicts = FILTERS[vector.kind](vector.snapshot, request_of(vector))
    accepted = {verdict.host for verdict in verdicts if verdict.accepted}
    assert accepted == set(vector.content["expected"]["hosts"])
