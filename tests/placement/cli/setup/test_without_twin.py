"""A usual weight of ours that no weight of the engine's does the same as: setup, its undoing and doctor."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ovirt_placement.model import SchedulingPolicy as Units
from ovirt_placement.model import Snapshot
from ovirt_placement.rules.affinity.groups import asked_by_groups
from ovirt_placement.rules.catalogue import UNITS
from ovirt_placement.rules.rule import Rule, UnitKind
from ovirt_simulator.core.engine import Engine
from tests.builders import SOFT_TOGETHER, cluster, group, host, snapshot, vm
from tests.placement.cli.doctor.examining import findings
from tests.placement.cli.live_engine import LiveEngine, Starting
from tests.placement.cli.setup.policies import (
    OUR_FILTERS,
    OUR_WEIGHTS,
    WEIGHTS,
    policy_named,
    unit_id,
    weights,
)

RULE = Rule(
    name="LonelyWeight",
    kind=UnitKind.WEIGHT,
    usual_factor=100_000,
    asked_by=asked_by_groups("soft", lambda snapshot, group: group.vms_rule.soft),
)


def engine_with(unit: str | None) -> Snapshot:
    """The engine knows our units by the policy of the cluster red; blue has a group, and keys."""
    known = Units(
        filters=(*sorted(OUR_FILTERS), "PlacementKeyFilter"),
        weights={**OUR_WEIGHTS, "PlacementKeyWeight": 1, **({} if unit is None else {unit: 1})},
        balance="HaReservationBalance",
    )
    return snapshot(
        cluster("c1", name="blue"),
        cluster("c2", name="red", scheduling_policy=known),
        *(host(f"h{number}", cluster="c1") for number in range(3)),
        vm("v1", cluster="c1"),
        vm("v2", cluster="c1"),
        group("g1", SOFT_TOGETHER, "v1 v2", cluster="c1", name="near"),
    )


@pytest.fixture(autouse=True)
def rule(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(UNITS, RULE.name, RULE)


@pytest.fixture
def live(starting: Starting) -> Iterator[LiveEngine]:
    with starting(engine_with(RULE.name), proxy=None, prepare=of_the_site) as running:
        yield running


def of_the_site(engine: Engine) -> None:
    policy = engine.policies.add("theirs", description="of the site")
    engine.policies.add_weight(policy.id, unit_id(engine, "PreferredHosts"), factor=9)


def about_blue(live: LiveEngine) -> list[str]:
    return [what for what in findings(live) if "blue" in what or "policy ovirt-placement" in what]


def test_every_policy_of_ours_has_it_with_its_own_factor(live: LiveEngine) -> None:
    live.run(0, "setup")
    policy = policy_named(live.engine, "ovirt-placement")
    assert weights(live.engine, policy) == WEIGHTS | OUR_WEIGHTS | {RULE.name: 100_000}
    live.changes.clear()
    live.run(0, "setup")
    assert live.changes == []
    live.run(0, "setup", "--factor", f"{RULE.name}=7")
    live.run(0, "setup")
    policy = policy_named(live.engine, "ovirt-placement")
    assert weights(live.engine, policy) == WEIGHTS | OUR_WEIGHTS | {RULE.name: 7}


def test_undo_takes_it_out(live: LiveEngine) -> None:
    live.run(0, "setup", "--policy", "theirs")
    assert weights(live.engine, policy_named(live.engine, "theirs"))[RULE.name] == 100_000
    live.run(0, "setup", "--undo", "--policy", "theirs")
    assert weights(live.engine, policy_named(live.engine, "theirs")) == {"PreferredHosts": 9}
    assert policy_named(live.engine, "theirs").description == "of the site"


@pytest.mark.system
@pytest.mark.system
def test_a_policy_without_it_gets_it(live: LiveEngine) -> None:
    live.run(0, "setup", "--cluster", "blue")
    policy = policy_named(live.engine, "ovirt-placement")
    live.engine.policies.remove_unit(policy.id, unit_id(live.engine, RULE.name))
    (what,) = about_blue(live)
    assert what == (
        "cluster blue: soft rules of the groups near mean nothing when VMs are placed: its policy"
        " ovirt-placement lacks LonelyWeight"
    )
    out, _ = live.run(0, "setup")
    assert out == "add the weight LonelyWeight x 100000\n"
    assert about_blue(live) == []


@pytest.mark.system
def test_keys_are_not_taken_to_be_outvoted_by_it(live: LiveEngine) -> None:
    """It is meant to count before all others; those are left to be outvoted."""
    live.run(0, "setup", "--cluster", "blue", "--placement-keys")
    assert about_blue(live) == []
    live.run(0, "setup", "--factor", "PlacementKeyWeight=300")
    (what,) = about_blue(live)
    assert "with 3 hosts it takes 353" in what


def test_an_engine_that_does_not_know_it_is_reported(starting: Starting) -> None:
    with starting(engine_with(None), proxy=None) as live:
        _, err = live.run(2, "setup")
        assert "the engine has no weight unit LonelyWeight" in err
        assert "the engine does not know these policy units: LonelyWeight" in findings(live)
