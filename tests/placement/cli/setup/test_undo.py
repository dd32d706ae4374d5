"""`ovirt-placement setup --undo`: clusters get what they had; and who had policies set up is recorded."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from ovirt_placement.store.user_actions import UserAction, UserActionStore
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.core.entities import SchedulingPolicy, UnitType
from ovirt_simulator.http.control import Disturbance
from tests.builders import cluster, snapshot
from tests.placement.cli.live_engine import LiveEngine, Starting
from tests.placement.cli.setup.policies import (
    OUR_WEIGHTS,
    PROPERTIES,
    STATE,
    TWIN_WEIGHTS,
    balance,
    check_complete,
    cluster_policy,
    made,
    policy_named,
    unit_id,
    weights,
)


# -- `ovirt-placement setup --undo`: our units go, the engine's come back, and clusters get what they had.
def names(live: LiveEngine) -> list[str]:
    return [policy.name for policy in live.engine.queries.state.policies.values()]


def theirs(engine: Engine, **more: int) -> None:
    """A policy with one of the engine's weights next to which ours stand, and without the filters."""
    factors = {"OptimalForHaReservation": 30, **more}
    policy = made(engine, "theirs", "Memory", "OptimalForEvenDistribution", factors=factors)
    engine.policies.edit(policy, properties={"HighUtilization": "70"})


def test_a_policy_that_setup_made_goes_and_its_clusters_return(live: LiveEngine) -> None:
    before = names(live)
    live.engine.policies.update_cluster("c2", policy_name="evenly_distributed")
    live.run(0, "setup --cluster blue --cluster red")
    out, _ = live.run(0, "setup --undo")
    assert out.splitlines() == [
        "let the cluster blue use the policy none again",
        "let the cluster red use the policy evenly_distributed again",
        "remove the policy ovirt-placement",
    ]
    assert names(live) == before
    assert cluster_policy(live.engine, "c1") == "none"
    assert cluster_policy(live.engine, "c2") == "evenly_distributed"
    live.changes.clear()
    out, _ = live.run(0, "setup --undo")
    assert out == "The policy ovirt-placement has nothing of setup; nothing to change.\n"
    assert live.changes == []


def test_what_an_administrator_changed_meanwhile_stays(starting: Starting) -> None:
    near, on_hosts = "VmAffinityGroups", "VmToHostsAffinityGroups"
    with starting(STATE, prepare=lambda engine: theirs(engine, **{near: 2, on_hosts: 2})) as live:
        live.run(0, "setup --policy theirs")
        policy, change = policy_named(live.engine, "theirs").id, live.engine.policies
        units = {name: unit_id(live.engine, name, UnitType.WEIGHT) for name in (near, on_hosts)}
        for unit in units.values():
            change.remove_unit(policy, unit)
        change.attach("weights", policy, units[near], factor=7)
        live.run(0, "setup --undo --policy theirs")
        assert weights(live.engine, "theirs") == {"OptimalForHaReservation": 30, near: 7}


def test_what_options_changed_is_as_it_was(starting: Starting) -> None:
    """Factors of weights next to which none of ours stands, and properties: of the policy and of clusters."""
    asked = ("--factor", "PreferredHosts=7", "--factor", "HA=3", "--property", "HighUtilization=66")

    def used(engine: Engine) -> None:
        even = "OptimalForEvenDistribution"
        policy = made(engine, "theirs", "CPUOverloaded", even, factors={"PreferredHosts": 9})
        engine.policies.edit(policy, properties=PROPERTIES | {"HighUtilization": "70"})
        engine.policies.update_cluster("c1", policy_name="theirs", properties={"HighUtilization": "75"})
        engine.policies.update_cluster("c2", policy_name="none", properties={"HighUtilization": "77"})

    with starting(STATE, prepare=used) as live:
        before = every_policy(live), dict(live.engine.queries.state.clusters)
        for _ in range(2):
            live.run(0, "setup", "--policy", "theirs", "--cluster", "blue", "--cluster", "red", *asked)
        found = weights(live.engine, "theirs")
        assert (found["PreferredHosts"], found["HA"]) == (7, 3)
        for each in live.engine.queries.state.clusters.values():
            assert each.scheduling_properties["HighUtilization"] == "66"
        out, _ = live.run(0, "setup --undo --policy theirs")
        assert "let the cluster blue have the parameter HighUtilization=75 again" in out.splitlines()
        assert (every_policy(live), dict(live.engine.queries.state.clusters)) == before


@pytest.mark.system
def test_a_policy_that_goes_first_hands_on_what_clusters_had_before_it(live: LiveEngine) -> None:
    live.engine.policies.update_cluster(
        "c1", policy_name="evenly_distributed", properties={"HighUtilization": "77"}
    )
    live.engine.policies.add("theirs")
    live.run(0, "setup --all-policies --property HighUtilization=66")
    live.run(0, "setup --policy theirs --cluster blue")
    live.run(0, "setup --undo --policy ovirt-placement-evenly_distributed")
    out, _ = live.run(0, "setup --undo --policy theirs")
    assert "let the cluster blue use the policy evenly_distributed again" in out.splitlines()
    assert live.engine.queries.state.clusters["c1"].scheduling_properties["HighUtilization"] == "77"


@pytest.mark.parametrize("options", [(), pytest.param(("--all-policies",), marks=pytest.mark.system)])
def test_an_engines_policy_that_shows_another_name_is_known_by_its_id(
    live: LiveEngine, options: tuple[str, ...]
) -> None:
    """The engine refuses the new name, and shows it until it restarts."""
    none = policy_named(live.engine, "none")
    with pytest.raises(Exception, match="Parameters are invalid"):
        live.engine.policies.edit(none.id, name="some")
    live.run(0, "setup", *(options or ("--cluster", "blue")))
    assert policy_named(live.engine, "ovirt-placement").description.startswith("As the policy none,")
    live.run(0, "setup", "--undo", *options)
    assert live.engine.queries.state.clusters["c1"].policy_id == none.id


def test_where_nobody_remembers_all_that_stand_alongside_ours_stay_and_that_is_reported(
    starting: Starting,
) -> None:
    with starting(STATE, prepare=theirs) as live:
        live.run(0, "setup --policy theirs")
        policy = policy_named(live.engine, "theirs")
        live.engine.policies.edit(policy.id, description="edited in the portal")
        out, _ = live.run(0, "setup --undo --policy theirs")
        assert "note: it is not recorded which of the engine's units the policy had before ours" in out
        assert weights(live.engine, "theirs") == {
            "VmAffinityGroups": 1,
            "VmToHostsAffinityGroups": 20,
            "OptimalForHaReservation": 30,
        }
        assert balance(live.engine, "theirs") == "None"
        assert policy_named(live.engine, "theirs").description == "edited in the portal"


@pytest.mark.parametrize(("used", "left"), [("theirs", {"HighUtilization": "70"}), ("none", PROPERTIES)])
def test_parameters_of_our_units_go_from_clusters_whether_they_keep_the_policy_or_not(
    starting: Starting, used: str, left: dict[str, str]
) -> None:
    with starting(STATE, prepare=theirs) as live:
        live.engine.policies.update_cluster("c1", policy_name=used)
        asked = ("--cluster", "blue", "--property", "ha_weight_scale_down=5")
        live.run(0, "setup", "--policy", "theirs", *asked)
        out, _ = live.run(0, "setup --undo --policy theirs")
        dropped = "let the cluster blue drop the parameters ha_weight_scale_down" in out
        assert dropped == (used == "theirs")
        assert cluster_policy(live.engine, "c1") == used
        assert live.engine.queries.state.clusters["c1"].scheduling_properties == left


def test_parameters_that_a_cluster_lost_come_back_with_its_policy(starting: Starting) -> None:
    def used(engine: Engine) -> None:
        made(engine, "bare", balance="None")
        engine.policies.update_cluster("c1", policy_name="none", properties={"HighUtilization": "66"})

    with starting(STATE, prepare=used) as live:
        out, _ = live.run(0, "setup --policy bare --cluster blue")
        assert "note: cluster blue loses its property HighUtilization=66" in out
        live.run(0, "setup --undo --policy bare")
        blue = live.engine.queries.state.clusters["c1"]
        assert cluster_policy(live.engine, "c1") == "none"
        assert blue.scheduling_properties["HighUtilization"] == "66"


@pytest.mark.system
def test_what_a_policy_cannot_remember_is_refused_before_anything_is_sent(starting: Starting) -> None:
    numbers = range(80)

    def used(engine: Engine) -> None:
        for number in numbers:
            engine.policies.update_cluster(f"c{number}", policy_name="power_saving")

    with starting(snapshot(*(cluster(f"c{number}") for number in numbers)), prepare=used) as live:
        _, err = live.run(2, "setup", *(word for number in numbers for word in ("--cluster", f"c{number}")))
        assert "has no room to remember what 80 clusters had before" in err
        assert live.changes == []
        live.run(0, "setup --all-policies")  # copies of what they have need remember nothing


@pytest.mark.parametrize(
    "arguments",
    [
        "--all-policies --policy theirs",
        "--all-policies --cluster blue",
        "--undo --cluster blue",
        "--undo --factor HaReservationWeight=2",
        "--undo --property a=b",
        "--undo --placement-keys",
    ],
)
def test_options_that_say_nothing_together_are_refused(live: LiveEngine, arguments: str) -> None:
    one, other, *_ = arguments.split()
    assert f"{one} goes without {other}" in live.run(2, f"setup {arguments}")[1]
    assert live.changes == []


# -- Who had a scheduling policy set up, and what was asked of the engine for it, is recorded.
def recorded(live: LiveEngine) -> tuple[UserAction, ...]:
    url = f"sqlite:///{live.config.parent}/store.db"
    with closing(UserActionStore(url, engine="default", patience_seconds=5)) as store:
        return store.actions(since_seconds=600)


def test_setup_and_its_undoing_are_recorded_with_what_was_asked_for(live: LiveEngine) -> None:
    live.run(0, "setup --cluster blue --dry-run")
    assert recorded(live) == ()
    for _ in range(2):  # the second changes nothing
        live.run(0, "setup --cluster blue")
    live.run(0, "setup --undo")
    found = recorded(live)
    assert [(one.kind, one.subject, one.state, one.engine_user) for one in found] == [
        (kind, "ovirt-placement", "done", "admin@internal") for kind in ("setup", "setup_undo")
    ]
    assert any("blue" in detail for detail in found[0].details)


def test_a_setup_that_fails_halfway_is_recorded_with_how_far_it_came(live: LiveEngine) -> None:
    live.server.disturbances.add(Disturbance(method="PUT", path="/clusters/", status=409))
    live.run(2, "setup --cluster blue")
    (found,) = recorded(live)
    done, _, of = (found.error or "").partition(" of ")
    assert (found.state, int(of.split()[0])) == ("failed", len(found.details))
    assert 0 < int(done) < len(found.details)


# -- `--all-policies`: what clusters use gets our units, and `--undo` takes them out again.
FOUR = snapshot(*(cluster(f"c{n}", name=name) for n, name in enumerate(("blue", "red", "green", "grey"))))
USED = ["none", "evenly_distributed", "theirs", "cluster_maintenance"]
COPY = "ovirt-placement-evenly_distributed"


def used_policies(engine: Engine) -> None:
    """Let the clusters use policies of all sorts; one policy is used by none."""
    made(engine, "theirs", "Memory", "OptimalForEvenDistribution", factors={"OptimalForHaReservation": 7})
    engine.policies.add("idle")
    for number, name in enumerate(USED):
        engine.policies.update_cluster(f"c{number}", policy_name=name)


@pytest.fixture
def used(starting: Starting) -> Iterator[LiveEngine]:
    with starting(FOUR, prepare=used_policies) as running:
        yield running


def assigned(used: LiveEngine) -> list[str]:
    return [cluster_policy(used.engine, f"c{number}") for number in range(4)]


def every_policy(used: LiveEngine) -> dict[str, object]:
    """All policies, whatever the order of their units."""
    return {policy.name: _ordered(policy) for policy in used.engine.queries.state.policies.values()}


def _ordered(policy: SchedulingPolicy) -> tuple[object, ...]:
    return (
        policy.id,
        policy.description,
        frozenset((entry.unit, entry.position) for entry in policy.filters),
        frozenset((entry.unit, entry.factor) for entry in policy.weights),
        policy.balance,
        tuple(sorted(policy.properties.items())),
    )


def check_set_up(used: LiveEngine) -> None:
    assert assigned(used) == ["ovirt-placement", COPY, "theirs", "cluster_maintenance"]
    check_complete(used.engine)
    check_complete(used.engine, COPY)
    expected = {**TWIN_WEIGHTS, "OptimalForHaReservation": 7, **OUR_WEIGHTS}
    assert weights(used.engine, "theirs") == expected
    theirs = policy_named(used.engine, "theirs")
    assert theirs.description.startswith("of the site [before ovirt-placement: ")


@pytest.mark.system
def test_each_policy_in_use_is_completed_or_copied_and_the_others_are_left(used: LiveEngine) -> None:
    before = every_policy(used)
    out, _ = used.run(0, "setup --all-policies")
    check_set_up(used)
    after = every_policy(used)
    assert after.keys() == before.keys() | {"ovirt-placement", COPY}
    assert {name for name in before if before[name] != after[name]} == {"theirs"}
    said = {"policy theirs:", f"policy {COPY}:", f"make the policy {COPY}", "add the filter AffinityFilter"}
    assert said <= {*out.splitlines()}
    assert "let the cluster red use the policy" in out
    assert "note: the cluster grey is being upgraded and is left alone" in out


@pytest.mark.system
@pytest.mark.parametrize(
    ("method", "path", "drop", "ways"),
    [
        ("POST", "/schedulingpolicies$", "answer", "there"),
        ("POST", "/weights$", "request", "there"),
        ("POST", "/balances$", "answer", "there and back"),
        ("PUT", "/schedulingpolicies/[^/]+$", "request", "there and back"),
        ("PUT", "/clusters/", "answer", "there and back"),
        ("PUT", "/clusters/", "request", "there and back"),
        ("DELETE", "/weights/", "request", "back"),
    ],
)
def test_an_interrupted_run_is_continued_by_the_next_there_and_back(
    used: LiveEngine, method: str, path: str, drop: str, ways: str
) -> None:
    before = every_policy(used)
    for way, options in (("there", ()), ("back", ("--undo",))):
        if way in ways:
            used.server.disturbances.add(Disturbance(method=method, path=path, drop=drop))
            used.run(2, "setup", "--all-policies", *options)
        used.run(0, "setup", "--all-policies", *options)
        if way == "there":
            check_set_up(used)
    assert every_policy(used) == before
    assert assigned(used) == USED


def test_a_policy_that_was_spoilt_does_not_keep_the_others_waiting(used: LiveEngine) -> None:
    policy, memory = policy_named(used.engine, "theirs").id, unit_id(used.engine, "Memory")
    with pytest.raises(Exception, match="attached more than once"):
        used.engine.policies.attach("filters", policy, memory)
    _, err = used.run(2, "setup --all-policies")
    assert "1 of 3 policies stay as they are: theirs: the engine has Memory twice" in err
    assert assigned(used)[:2] == ["ovirt-placement", COPY]


@pytest.mark.system
def test_parameters_reach_all_clusters(used: LiveEngine) -> None:
    def found() -> dict[str, str | None]:
        every = used.engine.queries.state.clusters.values()
        return {one.name: one.scheduling_properties.get("affinity_missing_unit") for one in every}

    used.run(0, "setup --all-policies")
    used.run(0, "setup --all-policies --property affinity_missing_unit=reject")
    assert found() == {"blue": "reject", "red": "reject", "green": "reject", "grey": None}
    used.run(0, "setup --all-policies --undo")
    assert not any(found().values()), "nobody knows it any more: the engine has dropped it"


@pytest.mark.system
def test_a_cluster_that_went_from_one_of_ours_to_another_comes_back_to_where_it_began(
    used: LiveEngine,
) -> None:
    used.run(0, "setup --cluster red")
    used.run(0, "setup --policy second --cluster red --cluster green")
    used.run(0, "setup --policy theirs --cluster red")
    assert assigned(used)[:3] == ["none", "theirs", "second"]
    used.run(0, "setup --undo --policy theirs")
    assert assigned(used)[:3] == ["none", "second", "second"]
    used.run(0, "setup --undo --all-policies")
    assert assigned(used) == USED
    # Where it began is where it came back to in between.
    used.run(0, "setup --cluster green")
    used.run(0, "setup --policy theirs --cluster green --cluster red")
    used.run(0, "setup --policy second --cluster red")
    shown = used.data(0, "setup --undo --all-policies --dry-run")["policies"]
    used.changes.clear()
    used.run(0, "setup --undo --all-policies")
    assert used.changes == [f"{one['method']} {one['path']}" for each in shown for one in each["requests"]]
    assert assigned(used) == USED


def test_the_name_of_a_copy_that_another_policy_has_is_refused(used: LiveEngine) -> None:
    used.engine.policies.add(COPY, description="somebody's")
    _, err = used.run(2, "setup --all-policies")
    assert f"setup would name its copy of evenly_distributed {COPY}, but another policy has that name" in err
    assert used.changes == []
