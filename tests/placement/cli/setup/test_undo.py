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
from tests.placement.cli.setup import policies


# -- `ovirt-placement setup --undo`: our units go, the engine's come back, and clusters get what they had.
def names(live: LiveEngine) -> list[str]:
    return [policy.name for policy in live.engine.queries.state.policies.values()]


def theirs(engine: Engine) -> None:
    """A policy with one of the engine's weights next to which ours stand, and without the filters."""
    policy = engine.policies.add("theirs", description="of the site")
    engine.policies.add_filter(policy.id, policies.unit_id(engine, "Memory"))
    engine.policies.add_weight(policy.id, policies.unit_id(engine, "OptimalForHaReservation"), factor=30)
    engine.policies.set_balance(policy.id, policies.unit_id(engine, "OptimalForEvenDistribution"))
    engine.policies.edit(policy.id, properties={"HighUtilization": "70"})


def test_a_policy_that_setup_made_goes_and_its_clusters_return(live: LiveEngine) -> None:
    before = names(live)
    live.engine.policies.update_cluster("c2", policy_name="evenly_distributed")
    live.run(0, "setup", "--cluster", "blue", "--cluster", "red")
    out, _ = live.run(0, "setup", "--undo")
    assert out.splitlines() == [
        "let the cluster blue use the policy none again",
        "let the cluster red use the policy evenly_distributed again",
        "remove the policy ovirt-placement",
    ]
    assert names(live) == before
    assert policies.cluster_policy(live.engine, "c1") == "none"
    assert policies.cluster_policy(live.engine, "c2") == "evenly_distributed"
    live.changes.clear()
    out, _ = live.run(0, "setup", "--undo")
    assert out == "The policy ovirt-placement has nothing of setup; nothing to change.\n"
    assert live.changes == []


def test_a_policy_of_the_site_is_as_it_was(starting: Starting) -> None:
    with starting(policies.STATE, prepare=theirs) as live:
        live.run(0, "setup", "--policy", "theirs", "--cluster", "blue", "--factor", "SoftAffinityWeight=9")
        said = live.data(0, "setup", "--undo", "--policy", "theirs", "--dry-run")
        assert (said["before"][0]["clusters"][0]["name"], said["after"][0]["clusters"]) == ("blue", [])
        shown = said["policies"][0]
        live.changes.clear()
        out, _ = live.run(0, "setup", "--undo", "--policy", "theirs")
        assert live.changes == [f"{one['method']} {one['path']}" for one in shown["requests"]]
        assert "take out the weight VmAffinityGroups" in out.splitlines()
        assert "set the balance OptimalForEvenDistribution" in out.splitlines()
        policy = policies.policy_named(live.engine, "theirs")
        assert set(policies.filters(live.engine, "theirs")) == {"Memory"}
        assert policies.weights(live.engine, "theirs") == {"OptimalForHaReservation": 30}
        assert policies.balance(live.engine, "theirs") == "OptimalForEvenDistribution"
        assert policy.properties == {"HighUtilization": "70"}
        assert policy.description == "of the site"
        assert policies.cluster_policy(live.engine, "c1") == "none"


def test_what_an_administrator_changed_meanwhile_stays(starting: Starting) -> None:
    near, on_hosts = "VmAffinityGroups", "VmToHostsAffinityGroups"

    def more(engine: Engine) -> None:
        theirs(engine)
        policy = policies.policy_named(engine, "theirs")
        for name in (near, on_hosts):
            engine.policies.add_weight(policy.id, policies.unit_id(engine, name, UnitType.WEIGHT), factor=2)

    with starting(policies.STATE, prepare=more) as live:
        live.run(0, "setup", "--policy", "theirs")
        policy = policies.policy_named(live.engine, "theirs")
        for name in (near, on_hosts):
            live.engine.policies.remove_unit(policy.id, policies.unit_id(live.engine, name, UnitType.WEIGHT))
        live.engine.policies.add_weight(
            policy.id, policies.unit_id(live.engine, near, UnitType.WEIGHT), factor=7
        )
        live.run(0, "setup", "--undo", "--policy", "theirs")
        assert policies.weights(live.engine, "theirs") == {"OptimalForHaReservation": 30, near: 7}


def test_what_options_changed_is_as_it_was(starting: Starting) -> None:
    """Factors of weights next to which none of ours stands, and properties: of the policy and of clusters."""
    asked = ("--factor", "PreferredHosts=7", "--factor", "HA=3", "--property", "HighUtilization=66")

    def used(engine: Engine) -> None:
        policy = engine.policies.add("theirs")
        even = policies.unit_id(engine, "OptimalForEvenDistribution", UnitType.LOAD_BALANCING)
        engine.policies.add_filter(policy.id, policies.unit_id(engine, "CPUOverloaded"))
        engine.policies.add_weight(policy.id, policies.unit_id(engine, "PreferredHosts"), factor=9)
        engine.policies.set_balance(policy.id, even)
        engine.policies.edit(
            policy.id, properties={"HighUtilization": "70", "CpuOverCommitDurationMinutes": "2"}
        )
        engine.policies.update_cluster("c1", policy_name="theirs", properties={"HighUtilization": "75"})
        engine.policies.update_cluster("c2", policy_name="none", properties={"HighUtilization": "77"})

    with starting(policies.STATE, prepare=used) as live:
        before = every_policy(live), dict(live.engine.queries.state.clusters)
        for _ in range(2):
            live.run(0, "setup", "--policy", "theirs", "--cluster", "blue", "--cluster", "red", *asked)
        weights = policies.weights(live.engine, "theirs")
        assert (weights["PreferredHosts"], weights["HA"]) == (7, 3)
        for each in live.engine.queries.state.clusters.values():
            assert each.scheduling_properties["HighUtilization"] == "66"
        out, _ = live.run(0, "setup", "--undo", "--policy", "theirs")
        assert "let the cluster blue have the parameter HighUtilization=75 again" in out.splitlines()
        assert (every_policy(live), dict(live.engine.queries.state.clusters)) == before


@pytest.mark.system
def test_a_policy_that_goes_first_hands_on_what_clusters_had_before_it(live: LiveEngine) -> None:
    live.engine.policies.update_cluster(
        "c1", policy_name="evenly_distributed", properties={"HighUtilization": "77"}
    )
    live.engine.policies.add("theirs")
    live.run(0, "setup", "--all-policies", "--property", "HighUtilization=66")
    live.run(0, "setup", "--policy", "theirs", "--cluster", "blue")
    live.run(0, "setup", "--undo", "--policy", "ovirt-placement-evenly_distributed")
    out, _ = live.run(0, "setup", "--undo", "--policy", "theirs")
    assert "let the cluster blue use the policy evenly_distributed again" in out.splitlines()
    assert live.engine.queries.state.clusters["c1"].scheduling_properties["HighUtilization"] == "77"


@pytest.mark.parametrize("options", [(), pytest.param(("--all-policies",), marks=pytest.mark.system)])
def test_an_engines_policy_that_shows_another_name_is_known_by_its_id(
    live: LiveEngine, options: tuple[str, ...]
) -> None:
    """The engine refuses the new name, and shows it until it restarts."""
    none = policies.policy_named(live.engine, "none")
    with pytest.raises(Exception, match="Parameters are invalid"):
        live.engine.policies.edit(none.id, name="some")
    live.run(0, "setup", *(options or ("--cluster", "blue")))
    assert policies.policy_named(live.engine, "ovirt-placement").description.startswith("As the policy none,")
    live.run(0, "setup", "--undo", *options)
    assert live.engine.queries.state.clusters["c1"].policy_id == none.id


def test_where_nobody_remembers_all_that_stand_alongside_ours_stay_and_that_is_reported(
    starting: Starting,
) -> None:
    with starting(policies.STATE, prepare=theirs) as live:
        live.run(0, "setup", "--policy", "theirs")
        policy = policies.policy_named(live.engine, "theirs")
        live.engine.policies.edit(policy.id, description="edited in the portal")
        out, _ = live.run(0, "setup", "--undo", "--policy", "theirs")
        assert "note: it is not recorded which of the engine's units the policy had before ours" in out
        assert policies.weights(live.engine, "theirs") == {
            "VmAffinityGroups": 1,
            "VmToHostsAffinityGroups": 20,
            "OptimalForHaReservation": 30,
        }
        assert policies.balance(live.engine, "theirs") == "None"
        assert policies.policy_named(live.engine, "theirs").description == "edited in the portal"


@pytest.mark.parametrize(
    ("used", "left"),
    [
        ("theirs", {"HighUtilization": "70"}),
        ("none", {"CpuOverCommitDurationMinutes": "2", "HighUtilization": "80"}),
    ],
)
def test_parameters_of_our_units_go_from_clusters_whether_they_keep_the_policy_or_not(
    starting: Starting, used: str, left: dict[str, str]
) -> None:
    with starting(policies.STATE, prepare=theirs) as live:
        live.engine.policies.update_cluster("c1", policy_name=used)
        asked = ("--cluster", "blue", "--property", "ha_weight_scale_down=5")
        live.run(0, "setup", "--policy", "theirs", *asked)
        out, _ = live.run(0, "setup", "--undo", "--policy", "theirs")
        dropped = "let the cluster blue drop the parameters ha_weight_scale_down" in out
        assert dropped == (used == "theirs")
        assert policies.cluster_policy(live.engine, "c1") == used
        assert live.engine.queries.state.clusters["c1"].scheduling_properties == left


def test_parameters_that_a_cluster_lost_come_back_with_its_policy(starting: Starting) -> None:
    def used(engine: Engine) -> None:
        engine.policies.add("bare")
        engine.policies.set_balance(
            policies.policy_named(engine, "bare").id, policies.unit_id(engine, "None")
        )
        engine.policies.update_cluster("c1", policy_name="none", properties={"HighUtilization": "66"})

    with starting(policies.STATE, prepare=used) as live:
        out, _ = live.run(0, "setup", "--policy", "bare", "--cluster", "blue")
        assert "note: cluster blue loses its property HighUtilization=66" in out
        live.run(0, "setup", "--undo", "--policy", "bare")
        blue = live.engine.queries.state.clusters["c1"]
        assert policies.cluster_policy(live.engine, "c1") == "none"
        assert blue.scheduling_properties["HighUtilization"] == "66"


@pytest.mark.system
def test_what_a_policy_cannot_remember_is_refused_before_anything_is_sent(starting: Starting) -> None:
    state = snapshot(*(cluster(f"c{number}", name=f"cluster{number}") for number in range(80)))
    everybody = [word for number in range(80) for word in ("--cluster", f"c{number}")]

    def used(engine: Engine) -> None:
        for number in range(80):
            engine.policies.update_cluster(f"c{number}", policy_name="power_saving")

    with starting(state, prepare=used) as live:
        _, err = live.run(2, "setup", *everybody)
        assert "has no room to remember what 80 clusters had before" in err
        assert live.changes == []
        live.run(0, "setup", "--all-policies")  # copies of what they have need remember nothing


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ("--all-policies --policy theirs", "--all-policies goes without --policy"),
        ("--all-policies --cluster blue", "--all-policies goes without --cluster"),
        ("--undo --cluster blue", "--undo goes without --cluster"),
        ("--undo --factor HaReservationWeight=2", "--undo goes without --factor"),
        ("--undo --property a=b", "--undo goes without --property"),
        ("--undo --placement-keys", "--undo goes without --placement-keys"),
    ],
)
def test_options_that_say_nothing_together_are_refused(
    live: LiveEngine, arguments: str, complaint: str
) -> None:
    _, err = live.run(2, "setup", *arguments.split())
    assert complaint in err
    assert live.changes == []


# -- Who had a scheduling policy set up, and what was asked of the engine for it, is recorded.
def recorded(live: LiveEngine) -> tuple[UserAction, ...]:
    url = f"sqlite:///{live.config.parent}/store.db"
    with closing(UserActionStore(url, engine="default", patience_seconds=5)) as store:
        return store.actions(since_seconds=600)


def test_setup_and_its_undoing_are_recorded_with_what_was_asked_for(starting: Starting) -> None:
    with starting(policies.STATE) as live:
        live.run(0, "setup", "--cluster", "blue", "--dry-run")
        assert recorded(live) == ()
        live.run(0, "setup", "--cluster", "blue")
        live.run(0, "setup", "--cluster", "blue")  # changes nothing
        live.run(0, "setup", "--undo")
        found = recorded(live)
    assert [(one.kind, one.subject, one.state, one.engine_user) for one in found] == [
        ("setup", "ovirt-placement", "done", "admin@internal"),
        ("setup_undo", "ovirt-placement", "done", "admin@internal"),
    ]
    assert any("blue" in detail for detail in found[0].details)


def test_a_setup_that_fails_halfway_is_recorded_with_how_far_it_came(starting: Starting) -> None:
    with starting(policies.STATE) as live:
        live.server.disturbances.add(Disturbance(method="PUT", path="/clusters/", status=409))
        live.run(2, "setup", "--cluster", "blue")
        (found,) = recorded(live)
    assert found.state == "failed"
    assert found.error is not None
    done, _, of = found.error.partition(" of ")
    assert 0 < int(done) < int(of.split()[0]) == len(found.details)


# -- `--all-policies`: what clusters use gets our units, and `--undo` takes them out again.
FOUR = snapshot(*(cluster(f"c{n}", name=name) for n, name in enumerate(("blue", "red", "green", "grey"))))
USED = ["none", "evenly_distributed", "theirs", "cluster_maintenance"]
COPY = "ovirt-placement-evenly_distributed"


def used_policies(engine: Engine) -> None:
    """Let the clusters use policies of all sorts; one policy is used by none."""
    theirs = engine.policies.add("theirs", description="of the site")
    engine.policies.add_filter(theirs.id, policies.unit_id(engine, "Memory"))
    engine.policies.add_weight(theirs.id, policies.unit_id(engine, "OptimalForHaReservation"), factor=7)
    engine.policies.set_balance(theirs.id, policies.unit_id(engine, "OptimalForEvenDistribution"))
    engine.policies.add("idle")
    for number, name in enumerate(USED):
        engine.policies.update_cluster(f"c{number}", policy_name=name)


@pytest.fixture
def used(starting: Starting) -> Iterator[LiveEngine]:
    with starting(FOUR, prepare=used_policies) as running:
        yield running


def assigned(used: LiveEngine) -> list[str]:
    return [policies.cluster_policy(used.engine, f"c{number}") for number in range(4)]


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
    policies.check_complete(used.engine)
    policies.check_complete(used.engine, COPY)
    theirs = policies.policy_named(used.engine, "theirs")
    assert policies.weights(used.engine, "theirs") == {
        **(policies.TWIN_WEIGHTS | {"OptimalForHaReservation": 7}),
        **policies.OUR_WEIGHTS,
    }
    assert theirs.description.startswith("of the site [before ovirt-placement: ")


@pytest.mark.system
def test_each_policy_in_use_is_completed_or_copied_and_the_others_are_left(used: LiveEngine) -> None:
    before = every_policy(used)
    out, _ = used.run(0, "setup", "--all-policies")
    check_set_up(used)
    after = every_policy(used)
    assert after.keys() == before.keys() | {"ovirt-placement", COPY}
    assert {name for name in before if before[name] != after[name]} == {"theirs"}
    for line in (
        "policy theirs:",
        f"policy {COPY}:",
        f"make the policy {COPY}",
        "add the filter AffinityFilter",
    ):
        assert line in out.splitlines()
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
    with pytest.raises(Exception, match="attached more than once"):
        used.engine.policies.add_filter(
            policies.policy_named(used.engine, "theirs").id, policies.unit_id(used.engine, "Memory")
        )
    _, err = used.run(2, "setup", "--all-policies")
    assert "1 of 3 policies stay as they are: theirs: the engine has Memory twice" in err
    assert assigned(used)[:2] == ["ovirt-placement", COPY]


@pytest.mark.system
def test_parameters_reach_all_clusters(used: LiveEngine) -> None:
    used.run(0, "setup", "--all-policies")
    used.run(0, "setup", "--all-policies", "--property", "affinity_missing_unit=reject")
    found = {
        each.name: each.scheduling_properties.get("affinity_missing_unit")
        for each in used.engine.queries.state.clusters.values()
    }
    assert found == {"blue": "reject", "red": "reject", "green": "reject", "grey": None}
    used.run(0, "setup", "--all-policies", "--undo")
    # Nobody knows them any more: the engine has dropped them.
    assert not any(
        "affinity" in name
        for each in used.engine.queries.state.clusters.values()
        for name in each.scheduling_properties
    )


@pytest.mark.system
def test_a_cluster_that_went_from_one_of_ours_to_another_comes_back_to_where_it_began(
    used: LiveEngine,
) -> None:
    used.run(0, "setup", "--cluster", "red")
    used.run(0, "setup", "--policy", "second", "--cluster", "red", "--cluster", "green")
    used.run(0, "setup", "--policy", "theirs", "--cluster", "red")
    assert assigned(used)[:3] == ["none", "theirs", "second"]
    used.run(0, "setup", "--undo", "--policy", "theirs")
    assert assigned(used)[:3] == ["none", "second", "second"]
    used.run(0, "setup", "--undo", "--all-policies")
    assert assigned(used) == USED
    # Where it began is where it came back to in between.
    used.run(0, "setup", "--cluster", "green")
    used.run(0, "setup", "--policy", "theirs", "--cluster", "green", "--cluster", "red")
    used.run(0, "setup", "--policy", "second", "--cluster", "red")
    shown = used.data(0, "setup", "--undo", "--all-policies", "--dry-run")["policies"]
    used.changes.clear()
    used.run(0, "setup", "--undo", "--all-policies")
    assert used.changes == [f"{one['method']} {one['path']}" for each in shown for one in each["requests"]]
    assert assigned(used) == USED


def test_the_name_of_a_copy_that_another_policy_has_is_refused(used: LiveEngine) -> None:
    used.engine.policies.add(COPY, description="somebody's")
    _, err = used.run(2, "setup", "--all-policies")
    assert f"setup would name its copy of evenly_distributed {COPY}, but another policy has that name" in err
    assert used.changes == []
