"""Policies of an earlier release, with our weights in place of the engine's: migrated, and undone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ovirt_simulator.core.engine import Engine
from ovirt_simulator.core.entities import UnitType
from ovirt_simulator.http.disturbances import Disturbance
from tests.placement.cli.live_engine import LiveEngine, Starting
from tests.placement.cli.setup.policies import (
    MANDATORY,
    OUR_FILTERS,
    OUR_WEIGHTS,
    STATE,
    TWINS,
    as_earlier_release,
    balance,
    check_complete,
    cluster_policy,
    filters,
    policy_named,
    unit_id,
    weights,
)

#: Of a policy of the site that had the engine's HA weight x 30 and PreferredHosts x 9.
DESCRIPTION = (
    'of the site [before ovirt-placement: {"units":{"filters_lacked":["VmAffinityGroups",'
    '"VmToHostsAffinityGroups"],"weights_lacked":["VmAffinityGroups","VmToHostsAffinityGroups"],'
    '"balance":"OptimalForEvenDistribution"}}]'
)
BEFORE = {"PreferredHosts": 9, "OptimalForHaReservation": 30}
EARLIER = {"PreferredHosts": 9, "SoftAffinityWeight": 1, "HostAffinityWeight": 20, "HaReservationWeight": 30}
MIGRATED = EARLIER | {
    "VmAffinityGroups": 1, "VmToHostsAffinityGroups": 20, "OptimalForHaReservation": 30,
    "HardAffinityWeight": 100_000, "PlacementRuleWeight": 20,
}  # fmt: skip


def of_the_site(engine: Engine) -> None:
    """What the earlier release left of such a policy."""
    policy = engine.policies.add("theirs", description=DESCRIPTION)
    for name in ("Memory", *OUR_FILTERS):
        engine.policies.add_filter(policy.id, unit_id(engine, name))
    for name in ("VmAffinityGroups", "VmToHostsAffinityGroups"):
        engine.policies.add_filter(policy.id, unit_id(engine, name, UnitType.FILTER))
    for name, factor in EARLIER.items():
        engine.policies.add_weight(policy.id, unit_id(engine, name), factor=factor)
    engine.policies.set_balance(policy.id, unit_id(engine, "HaReservationBalance"))


@pytest.fixture
def live(starting: Starting) -> Iterator[LiveEngine]:
    with starting(STATE, prepare=of_the_site) as running:
        yield running


def found(live: LiveEngine) -> dict[str, int]:
    return weights(live.engine, policy_named(live.engine, "theirs"))


def check_as_before(live: LiveEngine) -> None:
    policy = policy_named(live.engine, "theirs")
    assert weights(live.engine, policy) == BEFORE
    assert set(filters(live.engine, policy)) == MANDATORY | {"Memory"}
    assert balance(live.engine, policy) == "OptimalForEvenDistribution"
    assert policy.description == "of the site"


def test_the_engines_weights_come_back_with_the_factors_that_ours_have(live: LiveEngine) -> None:
    out, _ = live.run(0, "setup", "--policy", "theirs")
    assert out.splitlines() == [
        "add the weight HardAffinityWeight x 100000",
        "add the weight VmAffinityGroups x 1",
        "add the weight VmToHostsAffinityGroups x 20",
        "add the weight PlacementRuleWeight x 20",
        "add the weight OptimalForHaReservation x 30",
    ]
    assert found(live) == MIGRATED
    assert policy_named(live.engine, "theirs").description == DESCRIPTION
    live.changes.clear()
    live.run(0, "setup", "--policy", "theirs")
    assert live.changes == []


def test_a_policy_that_setup_made_is_migrated_too(starting: Starting) -> None:
    with starting(STATE) as live:
        live.run(0, "setup", "--cluster", "blue", "--factor", "HaReservationWeight=6")
        as_earlier_release(live.engine, "ovirt-placement")
        live.run(0, "setup")
        policy = policy_named(live.engine, "ovirt-placement")
        present = weights(live.engine, policy)
        twins = {own: present[twin] for own, twin in TWINS.items()}
        assert twins == {own: OUR_WEIGHTS[own] for own in TWINS} | {"HaReservationWeight": 6}
        live.run(0, "setup", "--factor", "HaReservationWeight=1")
        check_complete(live.engine)
        assert cluster_policy(live.engine, "c1") == "ovirt-placement"


@pytest.mark.parametrize(
    "runs",
    [
        (),
        ((),),
        (("--factor", "HaReservationWeight=4"),),
        ((), ("--factor", "OptimalForHaReservation=4")),
        (("--factor", "SoftAffinityWeight=4"), ("--factor", "SoftAffinityWeight=5")),
    ],
)
def test_undo_gives_back_what_was_before_whether_it_is_migrated_or_not(
    live: LiveEngine, runs: tuple[tuple[str, ...], ...]
) -> None:
    for options in runs:
        live.run(0, "setup", "--policy", "theirs", *options)
    live.run(0, "setup", "--undo", "--policy", "theirs")
    check_as_before(live)


@pytest.mark.parametrize(("method", "path"), [("POST", "/weights$"), ("DELETE", "/weights/"), ("PUT", "")])
@pytest.mark.parametrize("drop", ["request", "answer"])
def test_what_was_interrupted_on_the_way_ends_the_same(
    live: LiveEngine, method: str, path: str, drop: str
) -> None:
    """There with a factor, which is set by taking the weight out and putting it back; and back."""
    strong = ("setup", "--policy", "theirs", "--factor", "HaReservationWeight=4")
    for arguments in (strong, ("setup", "--policy", "theirs", "--undo")):
        live.server.disturbances.add(Disturbance(method=method, path=path, drop=drop))
        live.run(2, *arguments)
        live.run(0, *arguments)
        if arguments is strong:
            assert found(live) == MIGRATED | {"HaReservationWeight": 4, "OptimalForHaReservation": 4}
    check_as_before(live)


def test_where_nobody_remembers_what_ours_replaced_comes_back_and_that_is_reported(live: LiveEngine) -> None:
    policy = policy_named(live.engine, "theirs")
    live.engine.policies.edit(policy.id, description="edited in the portal")
    for migrated in (False, True):
        shown = live.data(0, "setup", "--undo", "--policy", "theirs", "--dry-run")["policies"][0]
        assert shown["notes"][0].startswith("it is not recorded which of the engine's units")
        if not migrated:
            live.run(0, "setup", "--policy", "theirs")
            assert policy_named(live.engine, "theirs").description == "edited in the portal"
    live.run(0, "setup", "--undo", "--policy", "theirs")
    ours = {*TWINS, "HardAffinityWeight", "PlacementRuleWeight"}
    assert found(live) == {name: factor for name, factor in MIGRATED.items() if name not in ours}
    assert balance(live.engine, policy_named(live.engine, "theirs")) == "None"
