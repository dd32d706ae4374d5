"""Conflicts among a thousand groups are found in about the time in which violations are."""

from __future__ import annotations

import time
from collections.abc import Callable

from msgspec.structs import replace

from ovirt_placement.answers.groups.check import judge
from ovirt_placement.rules.affinity.conflicts import find_conflicts
from ovirt_placement.rules.catalogue import find_violations
from ovirt_simulator.generate import Sizes, generate


def seconds(work: Callable[[], object]) -> float:
    """The least of three: what else the machine does only makes it slower."""

    def once() -> float:
        began = time.process_time()
        work()
        return time.process_time() - began

    return min(once() for _ in range(3))


def test_conflicts_and_the_check_of_a_changed_group() -> None:
    state = generate(Sizes(clusters=1, hosts=200, vms=3000, groups=600), 1)
    cluster, group = state.clusters[0].id, replace(state.affinity_groups[5], priority=9.0)
    usual = seconds(lambda: find_violations(replace(state), cluster))
    assert seconds(lambda: find_conflicts(replace(state), cluster)) < 5 * usual
    assert seconds(lambda: judge(replace(state), group)) < 20 * usual
