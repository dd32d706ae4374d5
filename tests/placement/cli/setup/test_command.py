"""`ovirt-placement setup` against a simulated engine with the engine's bugs, and all that it may find."""

import fcntl

import pytest

from ovirt_placement.engine.topology import read_snapshot
from ovirt_placement.model import SchedulingPolicy as Units
from ovirt_placement.model import Snapshot
from ovirt_simulator.http.control import Disturbance, Drop
from tests.builders import cluster, snapshot
from tests.placement.cli.doctor.examining import findings
from tests.placement.cli.live_engine import LiveEngine, Starting
from tests.placement.cli.setup.policies import (
    FILTERS,
    OUR_FILTERS,
    OUR_WEIGHTS,
    PROPERTIES,
    STATE,
    TWIN_WEIGHTS,
    WEIGHTS,
    balance,
    check_complete,
    cluster_policy,
    filters,
    made,
    policy_named,
    unit_id,
    weights,
)
from tests.placement.engine_server import connected


# -- `ovirt-placement setup` against a simulated engine with the engine's bugs, and a real proxy's units.
def test_a_new_policy_is_none_with_our_units_and_the_clusters_named_use_it(live: LiveEngine) -> None:
    live.run(0, "setup --cluster blue")
    check_complete(live.engine)
    assert [cluster_policy(live.engine, one) for one in ("c1", "c2")] == ["ovirt-placement", "none"]
    with connected(live.server.api_url) as connection:
        known = read_snapshot(connection).clusters[0].scheduling_policy
    assert known is not None
    ours = ("AffinityFilter", "HostAffinityFilter", "PlacementRuleFilter")
    assert (known.filters, known.weights, known.balance) == (ours, OUR_WEIGHTS, "HaReservationBalance")
    assert {*known.engine_filters} == FILTERS
    assert known.unit_ids.keys() >= OUR_WEIGHTS.keys()


def test_a_dry_run_shows_the_very_requests_and_sends_none(live: LiveEngine) -> None:
    (policy,) = live.data(0, "setup --cluster blue --dry-run")["policies"]
    summary, rest = live.run(0, "setup --cluster blue --dry-run")[0].split("\n", 1)
    assert live.changes == []
    sent = len(policy["requests"])
    assert summary.startswith(f"{sent} requests would be sent: policy ovirt-placement (new) with ")
    assert summary.endswith(" and 1 cluster")
    assert "    POST /schedulingpolicies\n    <scheduling_policy><name>ovirt-placement</name>" in rest
    live.run(0, "setup --cluster blue")
    new = policy_named(live.engine, "ovirt-placement").id
    assert live.changes == [f"{r['method']} {r['path']}".replace("NEW", new) for r in policy["requests"]]
    kinds = [change.rpartition("/")[2] for change in live.changes]
    assert kinds.index(new) > max(kinds.index("balances"), kinds.index("weights"))  # properties after units


def test_two_at_once_are_refused(live: LiveEngine) -> None:
    """Both would find a unit lacking, and the engine keeps the one that it refuses."""
    with live.config.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        _, err = live.run(2, "setup --cluster blue")
        assert "another ovirt-placement setup changes policies now" in err
        live.run(0, "setup --cluster blue --dry-run")
        assert live.changes == []
    live.run(0, "setup --cluster blue")


def test_factors_are_kept_unless_others_are_asked_for(live: LiveEngine) -> None:
    """The engine's weight next to ours has that of ours, unless it is named itself."""
    expected = WEIGHTS | OUR_WEIGHTS
    for asked, found in (
        ({"VmAffinityGroups": 8}, {"VmAffinityGroups": 8, "SoftAffinityWeight": 8}),
        ({"SoftAffinityWeight": 50}, {"VmAffinityGroups": 50, "SoftAffinityWeight": 50}),
        ({"SoftAffinityWeight": 40, "VmAffinityGroups": 7, "PreferredHosts": 7}, {}),
        ({"VmAffinityGroups": 8}, {}),
    ):
        live.run(0, " ".join(["setup", *(f"--factor {name}={factor}" for name, factor in asked.items())]))
        expected |= asked | found
        assert weights(live.engine) == expected


@pytest.mark.parametrize("nth", range(6))
@pytest.mark.parametrize("drop", ["request", "answer"])
@pytest.mark.system
def test_a_factor_changes_though_a_parameter_is_set_that_only_its_weight_knows(
    starting: Starting, nth: int, drop: Drop
) -> None:
    """The engine refuses parameters that no unit knows. Whichever request is lost, the parameter is not."""
    with starting(STATE) as live:
        live.run(0, "setup --property ha_weight_scale_down=5")
        before = policy_named(live.engine, "ovirt-placement")
        asked = ("setup", "--factor", "HaReservationWeight=4", "--factor", "OptimalForHaReservation=1")
        requests = live.data(0, *asked, "--dry-run")["policies"][0]["requests"]
        assert [one["method"] for one in requests] == ["PUT", "PUT", "DELETE", "POST", "PUT", "PUT"]
        for one in requests[:nth]:
            live.server.disturbances.add(Disturbance(method=one["method"]))
        live.server.disturbances.add(Disturbance(method=requests[nth]["method"], drop=drop))
        live.run(2, *asked)
        live.run(0, *asked)
        policy = policy_named(live.engine, "ovirt-placement")
        assert weights(live.engine) == WEIGHTS | OUR_WEIGHTS | {"HaReservationWeight": 4}
        assert (policy.properties, policy.description) == (before.properties, before.description)


def test_properties_reach_policy_and_clusters_and_are_merged_with_theirs(live: LiveEngine) -> None:
    live.run(0, "setup --cluster blue --property ha_weight_scale_down=5")
    live.run(0, "setup --cluster blue --property affinity_missing_unit=reject")
    expected = PROPERTIES | {"ha_weight_scale_down": "5", "affinity_missing_unit": "reject"}
    assert policy_named(live.engine, "ovirt-placement").properties == expected
    assert live.engine.queries.state.clusters["c1"].scheduling_properties == expected


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ("--property affinity_missing_unt=reject", 'did you mean "affinity_missing_unit"?'),
        ("--property ha_weight_scale_down=0", "does not match (100|[1-9][0-9]?)"),
        ("--factor SoftAfinityWeight=3", 'the policy can have; did you mean "SoftAffinityWeight"?'),
        (
            "--policy evenly_distributed",
            "the policy evenly_distributed is the engine's own and locked: choose another name by --policy",
        ),
    ],
)
def test_what_the_engine_would_drop_or_refuse_is_refused_before(
    live: LiveEngine, given: str, complaint: str
) -> None:
    assert complaint in live.run(2, f"setup {given}")[1]
    assert live.changes == []


def test_a_cluster_that_loses_a_property_is_reported(starting: Starting) -> None:
    properties = {"Old_Key": "1", "HighUtilization": "70"}
    with starting(snapshot(cluster("c1", name="blue", scheduling_properties=properties))) as live:
        out, _ = live.run(0, "setup --cluster blue")
        assert "note: cluster blue loses its property Old_Key=1: no unit of the policy knows it" in out
        (blue,) = live.engine.queries.state.clusters.values()
    assert blue.scheduling_properties == PROPERTIES | {"HighUtilization": "70"}


def test_who_may_not_learns_which_permit_it_takes(starting: Starting) -> None:
    needed = "reader@internal may not change /schedulingpolicies: it needs the permit edit_storage_pool"
    for user, said in (("reader", needed), ("user", "give it the role ReadOnlyAdmin")):
        with starting(STATE, username=f"{user}@internal") as live:
            assert said in live.run(2, "setup")[1]


# -- What `ovirt-placement setup` makes of what it finds: others' policies, spoilt ones, missing units.
def test_in_anothers_policy_only_what_must_be_is_changed(starting: Starting) -> None:
    factors = {"VmAffinityGroups": 30, "PreferredHosts": 9}
    with starting(
        STATE, prepare=lambda engine: made(engine, "theirs", "Memory CPU", factors=factors)
    ) as live:
        live.run(0, "setup --policy theirs")
        added = {"Memory", "CPU", "VmAffinityGroups", "VmToHostsAffinityGroups"}
        assert set(filters(live.engine, "theirs")) == OUR_FILTERS | added
        expected = {**OUR_WEIGHTS, **TWIN_WEIGHTS, **factors, "SoftAffinityWeight": 30}
        assert weights(live.engine, "theirs") == expected
        assert balance(live.engine, "theirs") == "HaReservationBalance"
        live.changes.clear()
        live.run(0, "setup --policy theirs")
        assert live.changes == []


def known_too(filters: str = "", balance: str = "HaReservationBalance", **weights: int) -> Snapshot:
    """Two clusters; without a proxy the units stay as the second one's policy has them."""
    every = ("AffinityFilter", "HostAffinityFilter", "PlacementRuleFilter", *filters.split())
    units = Units(filters=every, weights={**OUR_WEIGHTS, **weights}, balance=balance)
    return snapshot(cluster("c1", name="blue"), cluster("c2", name="red", scheduling_policy=units))


def test_anothers_balance_stays_and_that_is_reported(starting: Starting) -> None:
    known = known_too()
    blue = cluster("c1", name="blue", scheduling_policy=Units(balance="PowerSaver"))
    with starting(snapshot(blue, known.clusters[1]), proxy=None) as live:
        out, _ = live.run(0, "setup --policy blue-placement")
        assert "note: the policy keeps its balance PowerSaver" in out
        assert balance(live.engine, "blue-placement") == "PowerSaver"


def test_units_of_placement_keys_come_where_they_are_asked_for_and_stay(starting: Starting) -> None:
    with starting(known_too("PlacementKeyFilter", PlacementKeyWeight=1), proxy=None) as live:
        live.run(0, "setup")
        assert "PlacementKeyWeight" not in weights(live.engine)
        live.run(0, "setup --placement-keys")
        live.changes.clear()
        live.run(0, "setup --placement-keys")
        live.run(0, "setup")
        assert live.changes == []
        assert weights(live.engine)["PlacementKeyWeight"] == 100_000
        assert "PlacementKeyFilter" in filters(live.engine)


ADMISSION = known_too("HaAdmissionFilter", HaAdmissionWeight=1)


@pytest.mark.parametrize("how", ["hard", "soft"])
def test_the_unit_of_ha_admission_control_comes_where_it_is_asked_for(starting: Starting, how: str) -> None:
    with starting(ADMISSION, proxy=None) as live:
        live.run(0, "setup --cluster blue")
        assert "HaAdmissionFilter" not in filters(live.engine)
        assert "(new)" not in live.run(0, "setup", "--ha-admission", how, "--dry-run")[0]
        out, _ = live.run(0, "setup", "--ha-admission", how)
        unit = {"hard": "add the filter HaAdmissionFilter", "soft": "add the weight HaAdmissionWeight x 1000"}
        assert unit[how] in out.splitlines()
        assert ("HaAdmissionFilter" in filters(live.engine)) is (how == "hard")
        assert ("HaAdmissionWeight" in weights(live.engine)) is (how == "soft")
        (what,) = [one for one in findings(live) if "cluster blue: its policy ovirt-placement has Ha" in one]
        assert what.endswith("refuses nothing there: the cluster has no HA reservation")


@pytest.mark.system
def test_hard_and_soft_admission_control_take_each_others_place(starting: Starting) -> None:
    units = {"hard": ("filter", "HaAdmissionFilter"), "soft": ("weight", "HaAdmissionWeight")}
    with starting(ADMISSION, proxy=None) as live:
        live.run(0, "setup --cluster blue --ha-admission hard")
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
        live.run(0, "setup --undo")
        assert all(one.name != "ovirt-placement" for one in live.engine.queries.state.policies.values())


def test_a_policy_that_the_engines_bug_spoilt_is_left_alone(live: LiveEngine) -> None:
    live.run(0, "setup")
    policy = policy_named(live.engine, "ovirt-placement")
    with pytest.raises(Exception, match="attached more than once"):
        live.engine.policies.attach("filters", policy.id, unit_id(live.engine, "Memory"))
    live.changes.clear()
    _, err = live.run(2, "setup --factor SoftAffinityWeight=9")
    assert "has Memory twice in the policy ovirt-placement" in err
    assert "restart ovirt-engine" in err
    assert live.changes == []


def test_units_that_the_engine_does_not_know_or_has_disabled_are_named(starting: Starting) -> None:
    unknown = "has no filter unit AffinityFilter: it asks the proxy for its units only when it starts"
    with starting(STATE, proxy=None) as live:
        assert f"the engine {unknown}" in live.run(2, "setup")[1]
    state = snapshot(cluster("c1", scheduling_policy=Units(filters=("AffinityFilter", "HostAffinityFilter"))))
    with starting(state, proxy="http://127.0.0.1:9") as live:
        assert "the engine has disabled AffinityFilter" in live.run(2, "setup")[1]
