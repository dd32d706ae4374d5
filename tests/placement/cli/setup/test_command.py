"""`ovirt-placement setup` against a simulated engine with the engine's bugs, and all that it may find."""

import fcntl

import pytest

from ovirt_placement.config import EngineSettings
from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.topology import read_snapshot
from ovirt_placement.model import SchedulingPolicy as Units
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.core.entities import UnitType
from ovirt_simulator.http.control import Disturbance, Drop
from tests.builders import cluster, snapshot
from tests.placement.cli.doctor.examining import findings
from tests.placement.cli.live_engine import PASSWORD, LiveEngine, Starting
from tests.placement.cli.setup import policies


# -- `ovirt-placement setup` against a simulated engine with the engine's bugs, and a real proxy's units.
def test_a_new_policy_is_none_with_our_units_and_the_clusters_named_use_it(live: LiveEngine) -> None:
    live.run(0, "setup", "--cluster", "blue")
    policies.check_complete(live.engine)
    assert (policies.cluster_policy(live.engine, "c1"), policies.cluster_policy(live.engine, "c2")) == (
        "ovirt-placement",
        "none",
    )
    settings = EngineSettings(url=live.server.api_url, username="admin@internal")
    with EngineConnection(settings, {"OVIRT_PASSWORD": PASSWORD}) as connection:
        blue, _ = read_snapshot(connection).clusters
    known = blue.scheduling_policy
    assert known is not None
    assert (known.filters, known.weights, known.balance) == (
        ("AffinityFilter", "HostAffinityFilter", "PlacementRuleFilter"),
        policies.OUR_WEIGHTS,
        "HaReservationBalance",
    )
    assert {*known.engine_filters} == policies.FILTERS
    assert known.unit_ids.keys() >= policies.OUR_WEIGHTS.keys()


def test_a_dry_run_shows_the_very_requests_and_sends_none(live: LiveEngine) -> None:
    shown = live.data(0, "setup", "--cluster", "blue", "--dry-run")
    assert live.changes == []
    assert shown["dry_run"]
    (policy,) = shown["policies"]
    out, _ = live.run(0, "setup", "--cluster", "blue", "--dry-run")
    summary, rest = out.split("\n", 1)
    assert summary.startswith(
        f"{len(policy['requests'])} requests would be sent: policy ovirt-placement (new) with "
    )
    assert summary.endswith(" and 1 cluster")
    assert "    POST /schedulingpolicies\n    <scheduling_policy><name>ovirt-placement</name>" in rest
    live.run(0, "setup", "--cluster", "blue")
    new = policies.policy_named(live.engine, "ovirt-placement").id
    assert live.changes == [f"{r['method']} {r['path']}".replace("NEW", new) for r in policy["requests"]]
    kinds = [change.rpartition("/")[2] for change in live.changes]
    assert kinds.index(new) > max(kinds.index("balances"), kinds.index("weights"))  # properties after units


def test_two_at_once_are_refused(live: LiveEngine) -> None:
    """Both would find a unit lacking, and the engine keeps the one that it refuses."""
    with live.config.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        _, err = live.run(2, "setup", "--cluster", "blue")
        assert "another ovirt-placement setup changes policies now" in err
        live.run(0, "setup", "--cluster", "blue", "--dry-run")
        assert live.changes == []
    live.run(0, "setup", "--cluster", "blue")


def test_factors_are_kept_unless_others_are_asked_for(live: LiveEngine) -> None:
    """The engine's weight next to ours has that of ours, unless it is named itself."""
    expected = policies.WEIGHTS | policies.OUR_WEIGHTS
    for asked, found in (
        ({"VmAffinityGroups": 8}, {"VmAffinityGroups": 8, "SoftAffinityWeight": 8}),
        ({"SoftAffinityWeight": 50}, {"VmAffinityGroups": 50, "SoftAffinityWeight": 50}),
        ({"SoftAffinityWeight": 40, "VmAffinityGroups": 7, "PreferredHosts": 7}, {}),
        ({"VmAffinityGroups": 8}, {}),
    ):
        live.run(
            0, "setup", *(word for item in asked.items() for word in ("--factor", "{}={}".format(*item)))
        )
        expected |= asked | found
        assert policies.weights(live.engine) == expected
    _, err = live.run(2, "setup", "--factor", "SoftAfinityWeight=3")
    assert 'no weight that the policy can have; did you mean "SoftAffinityWeight"?' in err


@pytest.mark.parametrize("nth", range(6))
@pytest.mark.parametrize("drop", ["request", "answer"])
@pytest.mark.system
def test_a_factor_changes_though_a_parameter_is_set_that_only_its_weight_knows(
    starting: Starting, nth: int, drop: Drop
) -> None:
    """The engine refuses parameters that no unit knows. Whichever request is lost, the parameter is not."""
    with starting(policies.STATE) as live:
        live.run(0, "setup", "--property", "ha_weight_scale_down=5")
        before = policies.policy_named(live.engine, "ovirt-placement")
        asked = ("setup", "--factor", "HaReservationWeight=4", "--factor", "OptimalForHaReservation=1")
        requests = live.data(0, *asked, "--dry-run")["policies"][0]["requests"]
        assert [one["method"] for one in requests] == ["PUT", "PUT", "DELETE", "POST", "PUT", "PUT"]
        for one in requests[:nth]:
            live.server.disturbances.add(Disturbance(method=one["method"]))
        live.server.disturbances.add(Disturbance(method=requests[nth]["method"], drop=drop))
        live.run(2, *asked)
        live.run(0, *asked)
        policy = policies.policy_named(live.engine, "ovirt-placement")
        assert policies.weights(live.engine) == policies.WEIGHTS | policies.OUR_WEIGHTS | {
            "HaReservationWeight": 4
        }
        assert (policy.properties, policy.description) == (before.properties, before.description)


def test_properties_reach_policy_and_clusters_and_are_merged_with_theirs(live: LiveEngine) -> None:
    live.run(0, "setup", "--cluster", "blue", "--property", "ha_weight_scale_down=5")
    live.run(0, "setup", "--cluster", "blue", "--property", "affinity_missing_unit=reject")
    expected = {
        "CpuOverCommitDurationMinutes": "2",
        "HighUtilization": "80",
        "ha_weight_scale_down": "5",
        "affinity_missing_unit": "reject",
    }
    assert policies.policy_named(live.engine, "ovirt-placement").properties == expected
    blue = live.engine.queries.state.clusters["c1"]
    assert blue.scheduling_properties == expected


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ("affinity_missing_unt=reject", 'did you mean "affinity_missing_unit"?'),
        ("ha_weight_scale_down=0", "does not match (100|[1-9][0-9]?)"),
    ],
)
def test_properties_that_the_engine_would_drop_or_refuse_are_refused_before(
    live: LiveEngine, given: str, complaint: str
) -> None:
    _, err = live.run(2, "setup", "--property", given)
    assert complaint in err
    assert live.changes == []


def test_a_cluster_that_loses_a_property_is_reported(starting: Starting) -> None:
    state = snapshot(
        cluster("c1", name="blue", scheduling_properties={"Old_Key": "1", "HighUtilization": "70"})
    )
    with starting(state) as live:
        out, _ = live.run(0, "setup", "--cluster", "blue")
        assert "note: cluster blue loses its property Old_Key=1: no unit of the policy knows it" in out
        (blue,) = live.engine.queries.state.clusters.values()
    assert blue.scheduling_properties == {"CpuOverCommitDurationMinutes": "2", "HighUtilization": "70"}


def test_who_may_not_learns_which_permit_it_takes(starting: Starting) -> None:
    with starting(policies.STATE, username="reader@internal") as live:
        _, err = live.run(2, "setup")
    assert "reader@internal may not change /schedulingpolicies: it needs the permit edit_storage_pool" in err
    with starting(policies.STATE, username="user@internal") as live:
        _, err = live.run(2, "setup")
    assert "give it the role ReadOnlyAdmin" in err


# -- What `ovirt-placement setup` makes of what it finds: others' policies, spoilt ones, missing units.
def own_policy(engine: Engine) -> None:
    """Make a policy as an administrator would: few units, and the engine's affinity weight with a factor."""
    policy = engine.policies.add("theirs", description="of the site")
    for name in ("Memory", "CPU"):
        engine.policies.add_filter(policy.id, policies.unit_id(engine, name))
    affinity = policies.unit_id(engine, "VmAffinityGroups", UnitType.WEIGHT)
    engine.policies.add_weight(policy.id, affinity, factor=30)
    engine.policies.add_weight(policy.id, policies.unit_id(engine, "PreferredHosts"), factor=9)


def test_in_anothers_policy_only_what_must_be_is_changed(starting: Starting) -> None:
    with starting(policies.STATE, prepare=own_policy) as live:
        live.run(0, "setup", "--policy", "theirs")
        assert set(policies.filters(live.engine, "theirs")) == policies.OUR_FILTERS | {
            "Memory", "CPU", "VmAffinityGroups", "VmToHostsAffinityGroups",
        }  # fmt: skip
        assert policies.weights(live.engine, "theirs") == {
            "PreferredHosts": 9, "VmAffinityGroups": 30, "SoftAffinityWeight": 30,
            "VmToHostsAffinityGroups": 20, "HostAffinityWeight": 20,
            "OptimalForHaReservation": 1, "HaReservationWeight": 1, "HardAffinityWeight": 100_000,
            "PlacementRuleWeight": 20,
        }  # fmt: skip
        assert policies.balance(live.engine, "theirs") == "HaReservationBalance"
        live.changes.clear()
        live.run(0, "setup", "--policy", "theirs")
        assert live.changes == []


def test_anothers_balance_stays_and_that_is_reported(starting: Starting) -> None:
    state = snapshot(cluster("c1", name="blue", scheduling_policy=Units(balance="PowerSaver")))
    # Without a proxy the state's units stay as they are.
    extra = Units(
        filters=("AffinityFilter", "HostAffinityFilter", "PlacementRuleFilter"),
        weights=policies.OUR_WEIGHTS,
        balance="HaReservationBalance",
    )
    state = snapshot(*state.clusters, cluster("c2", name="red", scheduling_policy=extra))
    with starting(state, proxy=None) as live:
        out, _ = live.run(0, "setup", "--policy", "blue-placement")
        assert "note: the policy keeps its balance PowerSaver" in out
        assert policies.balance(live.engine, "blue-placement") == "PowerSaver"


def test_units_of_placement_keys_come_where_they_are_asked_for_and_stay(starting: Starting) -> None:
    known = Units(
        filters=("AffinityFilter", "HostAffinityFilter", "PlacementRuleFilter", "PlacementKeyFilter"),
        weights={**policies.OUR_WEIGHTS, "PlacementKeyWeight": 1},
        balance="HaReservationBalance",
    )
    state = snapshot(cluster("c1", name="blue"), cluster("c2", name="red", scheduling_policy=known))
    with starting(state, proxy=None) as live:
        live.run(0, "setup")
        assert "PlacementKeyWeight" not in policies.weights(live.engine)
        live.run(0, "setup", "--placement-keys")
        live.changes.clear()
        live.run(0, "setup", "--placement-keys")
        live.run(0, "setup")
        assert live.changes == []
        assert policies.weights(live.engine)["PlacementKeyWeight"] == 100_000
        assert "PlacementKeyFilter" in policies.filters(live.engine)


ADMISSION = Units(
    filters=("AffinityFilter", "HostAffinityFilter", "PlacementRuleFilter", "HaAdmissionFilter"),
    weights={**policies.OUR_WEIGHTS, "HaAdmissionWeight": 1},
    balance="HaReservationBalance",
)


@pytest.mark.parametrize("how", ["hard", "soft"])
def test_the_unit_of_ha_admission_control_comes_where_it_is_asked_for(starting: Starting, how: str) -> None:
    state = snapshot(cluster("c1", name="blue"), cluster("c2", name="red", scheduling_policy=ADMISSION))
    with starting(state, proxy=None) as live:
        live.run(0, "setup", "--cluster", "blue")
        assert "HaAdmissionFilter" not in policies.filters(live.engine)
        assert "(new)" not in live.run(0, "setup", "--ha-admission", how, "--dry-run")[0]
        out, _ = live.run(0, "setup", "--ha-admission", how)
        unit = {"hard": "add the filter HaAdmissionFilter", "soft": "add the weight HaAdmissionWeight x 1000"}
        assert unit[how] in out.splitlines()
        assert ("HaAdmissionFilter" in policies.filters(live.engine)) is (how == "hard")
        assert ("HaAdmissionWeight" in policies.weights(live.engine)) is (how == "soft")
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
            present = {*policies.filters(live.engine), *policies.weights(live.engine)}
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
    policy = policies.policy_named(live.engine, "ovirt-placement")
    with pytest.raises(Exception, match="attached more than once"):
        live.engine.policies.add_filter(policy.id, policies.unit_id(live.engine, "Memory"))
    live.changes.clear()
    _, err = live.run(2, "setup", "--factor", "SoftAffinityWeight=9")
    assert "has Memory twice in the policy ovirt-placement" in err
    assert "restart ovirt-engine" in err
    assert live.changes == []


def test_units_that_the_engine_does_not_know_or_has_disabled_are_named(starting: Starting) -> None:
    with starting(policies.STATE, proxy=None) as live:
        _, err = live.run(2, "setup")
    assert (
        "the engine has no filter unit AffinityFilter: it asks the proxy for its units only when it starts"
        in err
    )
    state = snapshot(cluster("c1", scheduling_policy=Units(filters=("AffinityFilter", "HostAffinityFilter"))))
    with starting(state, proxy="http://127.0.0.1:9") as live:
        _, err = live.run(2, "setup")
    assert "the engine has disabled AffinityFilter" in err
