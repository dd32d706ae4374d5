"""Of placement rules of every kind `why`, units, planner and engine say the same: of starts and migrations.

Mixed with groups, labels, pinning, keys and other rules, on unequal hosts, some of them full. The engine is
simulated, and is asked over its REST API by the SDK; it asks a real proxy.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from msgspec.structs import replace

from ovirt_placement.model import Snapshot, Vm
from ovirt_placement.planning.plan import Step
from ovirt_placement.planning.problem.build_problem import legal
from ovirt_placement.planning.requests import make_room
from ovirt_placement.rules.placement_rules.in_force import KINDS
from ovirt_placement.rules.scheduling import order
from tests.examples import examples
from tests.integration.test_why_comes_true import (
    EXAMPLES,
    MEMORY,
    Attempts,
    accepted,
    freed,
    moves_freely,
    stopped,
    tied,
    who_goes,
)
from tests.integration.worlds import whole_policies, worlds
from tests.placement.rules.placement_rules.oracle import concerns, lets, running
from tests.placement.rules.strategies import HOSTS, VMS
from tests.plugins.published import Publisher

#: This many worlds of each kind; in the slow suite more.
QUICK, SLOW = 2, examples(40)
MANY = [pytest.param(QUICK, id="few"), pytest.param(SLOW, id="many", marks=pytest.mark.nightly)]
UNIT = "PlacementRuleFilter"


def by_hand(state: Snapshot, one: Vm) -> set[str]:
    """The hosts that all hard placement rules let a VM come to, by the second writing of the rules."""
    at = running(state)
    hard = [rule for rule in state.placement_rules if rule.enforcing and concerns(rule, state, one.id)]
    return {host for host in HOSTS if all(lets(rule, state, at, one.id, host) for rule in hard)}


def stands_still(state: Snapshot) -> bool:
    """Whether nothing is on its way: the second writing does not say where such VMs count."""
    return not state.pending and all(one.status != "migrating" for one in state.vms)


def without(state: Snapshot, unit: str) -> Snapshot:
    """The same where no policy has this filter."""
    clusters = []
    for one in state.clusters:
        policy = one.scheduling_policy
        filters = tuple(name for name in policy.filters if name != unit) if policy else ()
        clusters.append(replace(one, scheduling_policy=policy and replace(policy, filters=filters)))
    return replace(state, clusters=tuple(clusters))


def by_unit(proxy: Any, state: Snapshot, one: Vm) -> set[str]:
    parameters = dict(state.cluster_by_id[one.cluster].scheduling_properties)
    return set(proxy.runFilters([UNIT], list(HOSTS), one.id, parameters)["result"])


@pytest.mark.system
@pytest.mark.parametrize("many", MANY)
@pytest.mark.parametrize("kind", KINDS)
def test_a_start(publisher: Publisher, proxy: Any, url: str, kind: str, many: int) -> None:
    closed = compared = 0

    @settings(EXAMPLES, max_examples=many)
    @given(worlds(whole_policies(), MEMORY, kind))
    def start(state: Snapshot) -> None:
        nonlocal closed, compared
        with Attempts(stopped(state, VMS[:3]), url) as engine:
            publisher.publish(engine.state)
            for one in [engine.state.vm_by_id[name] for name in VMS[:3]]:
                reported = accepted(engine.state, one, HOSTS)
                assert reported <= by_unit(proxy, engine.state, one)
                if stands_still(engine.state):
                    assert by_unit(proxy, engine.state, one) == by_hand(engine.state, one)
                    compared += 1
                closed += len(HOSTS) - len(by_unit(proxy, engine.state, one))
                assert reported == {found.host for found in order(engine.state, one).hosts}
                room = make_room(engine.state, one.id)
                assert (room.plan.steps == () and room.host is not None) is bool(reported)
                assert reported == {each for each in HOSTS if engine.starts(one.id, each)}

    start()
    assert (closed and compared) or many == QUICK


@pytest.mark.parametrize("many", MANY)
@pytest.mark.parametrize("kind", KINDS)
def test_a_migration(publisher: Publisher, url: str, kind: str, many: int) -> None:
    @settings(EXAMPLES, max_examples=many)
    @given(worlds(whole_policies(), MEMORY, kind))
    def migrate(state: Snapshot) -> None:
        with Attempts(freed(state), url) as engine:
            publisher.publish(engine.state)
            without_reserve = without(engine.state, "HaAdmissionFilter")
            for one in [engine.state.vm_by_id[name] for name in VMS[:4]]:
                going = who_goes(engine.state, one)
                if (
                    len(going) > 1
                    or one.host is None
                    or one.hosted_engine
                    or not moves_freely(engine.state, one)
                ):
                    continue
                for target in HOSTS:
                    if target != one.host:
                        reported = target in accepted(engine.state, one, (target,))
                        step = Step(vms=(one.id,), sources=(one.host,), target=target, groups=(), repairs=())
                        # A plan takes no VM away from its peers, and keeps the reserve for failures.
                        assert reported or not legal(engine.state, step)
                        if tied(engine.state, one.id) == {one.id}:
                            assert legal(without_reserve, step) is reported, (one.id, target)
                        assert engine.moves(one.id, target, going) is reported, (one.id, target)

    migrate()
