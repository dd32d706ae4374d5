"""What `ovirt-placement setup` makes of what it finds: others' policies, spoilt ones, missing units."""

from __future__ import annotations

import pytest

from ovirt_placement.model import SchedulingPolicy as Units
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.core.entities import UnitType
from tests.builders import cluster, snapshot
from tests.placement.cli.doctor.examining import findings
from tests.placement.cli.live_engine import LiveEngine, Starting
from tests.placement.cli.setup.policies import (
    OUR_FILTERS,
    OUR_WEIGHTS,
    STATE,
    balance,
    filters,
    policy_named,
    unit_id,
    weights,
)


def own_policy(engine: Engine) -> None:
    """Make a policy as an administrator would: few units, and the engine's affinity weight with a factor."""
    policy = engine.policies.add("theirs", description="of the site")
    for name in ("Memory", "CPU"):
        engine.policies.add_filter(policy.id, unit_id(engine, name))
    affinity = unit_id(engine, "VmAffinityGroups", UnitType.WEIGHT)
    engine.policies.add_weight(policy.id, affinity, factor=30)
    engine.policies.add_weight(policy.id, unit_id(engine, "PreferredHosts"), factor=9)


def test_in_anothers_policy_only_what_must_be_is_changed(starting: Starting) -> None:
    with starting(STATE, prepare=own_policy) as live:
        live.run(0, "setup", "--policy", "theirs")
        assert set(filters(live.engine, "theirs")) == OUR_FILTERS | {
            "Memory", "CPU", "VmAffinityGroups", "VmToHostsAffinityGroups",
        }  # fmt: skip
        assert weights(live.engine, "theirs") == {
            "PreferredHosts": 9, "VmAffinityGroups": 30, "SoftAffinityWeight": 30,
            "VmToHostsAffinityGroups": 20, "HostAffinityWeight": 20,
            "OptimalForHaReservation": 1, "HaReservationWeight": 1, "HardAffinityWeight": 100_000,
            "PlacementRuleWeight": 20,
        }  # fmt: skip
        assert balance(live.engine, "theirs") == "HaReservationBalance"
        live.changes.clear()
        live.run(0, "setup", "--policy", "theirs")
        assert live.changes == []


def test_anothers_balance_stays_and_that_is_reported(starting: Starting) -> None:
    state = snapshot(cluster("c1", name="blue", scheduling_policy=Units(balance="PowerSaver")))
    # Without a proxy the state's units stay as they are.
    extra = Units(
        filters=("AffinityFilter", "HostAffinityFilter", "PlacementRuleFilter"),
        weights=OUR_WEIGHTS,
        balance="HaReservationBalance",
    )
    state = snapshot(*state.clusters, cluster("c2", name="red", scheduling_policy=extra))
    with starting(state, proxy=None) as live:
        out, _ = live.run(0, "setup", "--policy", "blue-placement")
        assert "note: the policy keeps its balance PowerSaver" in out
        assert balance(live.engine, "blue-placement") == "PowerSaver"


def test_units_of_placement_keys_come_where_they_are_asked_for_and_stay(
    starting: Starting,
) -> None:
    known = Units(
        filters=("AffinityFilter", "HostAffinityFilter", "PlacementRuleFilter", "PlacementKeyFilter"),
        weights={**OUR_WEIGHTS, "PlacementKeyWeight": 1},
        balance="HaReservationBalance",
    )
    state = snapshot(cluster("c1", name="blue"), cluster("c2", name="red", scheduling_policy=known))
    with starting(state, proxy=None) as live:
        live.run(0, "setup")
        assert "PlacementKeyWeight" not in weights(live.engine)
        live.run(0, "setup", "--placement-keys")
        live.changes.clear()
        live.run(0, "setup", "--placement-keys")
        live.run(0, "setup")
        assert live.changes == []
        assert weights(live.engine)["PlacementKeyWeight"] == 100_000
        assert "PlacementKeyFilter" in filters(live.engine)


ADMISSION = Units(
    filters=("AffinityFilter", "HostAffinityFilter", "PlacementRuleFilter", "HaAdmissionFilter"),
    weights={**OUR_WEIGHTS, "HaAdmissionWeight": 1},
    balance="HaReservationBalance",
)


@pytest.mark.parametrize("how", ["hard", "soft"])
def test_the_unit_of_ha_admission_control_comes_where_it_is_asked_for(starting: Starting, how: str) -> None:
    state = snapshot(cluster("c1", name="blue"), cluster("c2", name="red", scheduling_policy=ADMISSION))
    with starting(state, proxy=None) as live:
        live.run(0, "setup", "--cluster", "blue")
        assert "HaAdmissionFilter" not in filters(live.engine)
        before = live.changes[:]
        out, _ = live.run(0, "setup", "--ha-admission", how, "--dry-run")
        assert live.changes == before
        unit = {"hard": "add the filter HaAdmissionFilter", "soft": "add the weight HaAdmissionWeight x 1000"}
        assert unit[how] in out.splitlines()
        live.run(0, "setup", "--ha-admission", how)
        assert ("HaAdmissionFilter" in filters(live.engine)) is (how == "hard")
        assert ("HaAdmissionWeight" in weights(live.engine)) is (how == "soft")
        (what,) = [one for one in findings(live) if "cluster blue: its policy ovirt-placement has Ha" in one]
        assert what.endswith("refuses nothing there: the cluster has no HA reservation")


@pytest.mark.system
def test_hard_and_soft_admission_control_take_each_others_place(starting: Starting) -> None:
    state = snapshot(cluster("c1", name="blue"), cluster("c2", name="red", scheduling_policy=ADMISSION))
    units = {"hard": ("filter", "HaAdmissionFilter"), "soft": ("weight", "HaAdmissionWeight")}
    with starting(state, proxy=None) as live:
        live.run(0, "setup", "--cluster", "blue", "--ha-admission", "hard")
        for how, other in (("soft", "hard"), ("hard", "soft")):
            out, _ = live.run(0, "setup", "--ha-admission", how)
            kind, name = units[other]
            assert out.splitlines()[-1] == f"take out the {kind} {name}"
            present = {*filters(live.engine), *weights(live.engine)}
            assert units[how][1] in present
            assert name not in present
            live.changes.clear()
            live.run(0, "setup", "--ha-admission", how)
            live.run(0, "setup")
            assert live.changes == []
        live.run(0, "setup", "--undo")
        assert all(one.name != "ovirt-placement" for one in live.engine.queries.state.policies.values())


def test_the_engines_own_policies_are_locked(live: LiveEngine) -> None:
    _, err = live.run(2, "setup", "--policy", "evenly_distributed")
    assert (
        "the policy evenly_distributed is the engine's own and locked: choose another name by --policy" in err
    )
    assert live.changes == []


def test_a_policy_that_the_engines_bug_spoilt_is_left_alone(live: LiveEngine) -> None:
    live.run(0, "setup")
    policy = policy_named(live.engine, "ovirt-placement")
    with pytest.raises(Exception, match="attached more than once"):
        live.engine.policies.add_filter(policy.id, unit_id(live.engine, "Memory"))
    live.changes.clear()
    _, err = live.run(2, "setup", "--factor", "SoftAffinityWeight=9")
    assert "has Memory twice in the policy ovirt-placement" in err
    assert "restart ovirt-engine" in err
    assert live.changes == []


def test_units_that_the_engine_does_not_know_or_has_disabled_are_named(starting: Starting) -> None:
    with starting(STATE, proxy=None) as live:
        _, err = live.run(2, "setup")
    assert (
        "the engine has no filter unit AffinityFilter: it asks the proxy for its units only when it starts"
        in err
    )
    state = snapshot(cluster("c1", scheduling_policy=Units(filters=("AffinityFilter", "HostAffinityFilter"))))
    with starting(state, proxy="http://127.0.0.1:9") as live:
        _, err = live.run(2, "setup")
    assert "the engine has disabled AffinityFilter" in err
