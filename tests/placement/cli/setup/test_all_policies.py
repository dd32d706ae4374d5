"""`ovirt-placement setup --all-policies`: what clusters use gets our units; `--undo` takes them out again."""

from collections.abc import Iterator

import pytest

from ovirt_simulator.core.engine import Engine
from ovirt_simulator.core.entities import SchedulingPolicy
from ovirt_simulator.http.control import Disturbance
from tests.builders import cluster, snapshot
from tests.placement.cli.live_engine import LiveEngine, Starting
from tests.placement.cli.setup.policies import (
    OUR_WEIGHTS,
    TWIN_WEIGHTS,
    check_complete,
    cluster_policy,
    policy_named,
    unit_id,
    weights,
)

STATE = snapshot(*(cluster(f"c{n}", name=name) for n, name in enumerate(("blue", "red", "green", "grey"))))
USED = ["none", "evenly_distributed", "theirs", "cluster_maintenance"]
COPY = "ovirt-placement-evenly_distributed"


def used_policies(engine: Engine) -> None:
    """Let the clusters use policies of all sorts; one policy is used by none."""
    theirs = engine.policies.add("theirs", description="of the site")
    engine.policies.add_filter(theirs.id, unit_id(engine, "Memory"))
    engine.policies.add_weight(theirs.id, unit_id(engine, "OptimalForHaReservation"), factor=7)
    engine.policies.set_balance(theirs.id, unit_id(engine, "OptimalForEvenDistribution"))
    engine.policies.add("idle")
    for number, name in enumerate(USED):
        engine.policies.update_cluster(f"c{number}", policy_name=name)


@pytest.fixture
def live(starting: Starting) -> Iterator[LiveEngine]:
    with starting(STATE, prepare=used_policies) as running:
        yield running


def assigned(live: LiveEngine) -> list[str]:
    return [cluster_policy(live.engine, f"c{number}") for number in range(4)]


def every_policy(live: LiveEngine) -> dict[str, object]:
    """All policies, whatever the order of their units."""
    return {policy.name: _ordered(policy) for policy in live.engine.queries.state.policies.values()}


def _ordered(policy: SchedulingPolicy) -> tuple[object, ...]:
    return (
        policy.id,
        policy.description,
        frozenset((entry.unit, entry.position) for entry in policy.filters),
        frozenset((entry.unit, entry.factor) for entry in policy.weights),
        policy.balance,
        tuple(sorted(policy.properties.items())),
    )


def check_set_up(live: LiveEngine) -> None:
    assert assigned(live) == ["ovirt-placement", COPY, "theirs", "cluster_maintenance"]
    check_complete(live.engine)
    check_complete(live.engine, COPY)
    theirs = policy_named(live.engine, "theirs")
    assert weights(live.engine, "theirs") == {
        **(TWIN_WEIGHTS | {"OptimalForHaReservation": 7}),
        **OUR_WEIGHTS,
    }
    assert theirs.description.startswith("of the site [before ovirt-placement: ")


@pytest.mark.system
def test_each_policy_in_use_is_completed_or_copied_and_the_others_are_left(live: LiveEngine) -> None:
    before = every_policy(live)
    out, _ = live.run(0, "setup", "--all-policies")
    check_set_up(live)
    after = every_policy(live)
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
    live: LiveEngine, method: str, path: str, drop: str, ways: str
) -> None:
    before = every_policy(live)
    for way, options in (("there", ()), ("back", ("--undo",))):
        if way in ways:
            live.server.disturbances.add(Disturbance(method=method, path=path, drop=drop))
            live.run(2, "setup", "--all-policies", *options)
        live.run(0, "setup", "--all-policies", *options)
        if way == "there":
            check_set_up(live)
    assert every_policy(live) == before
    assert assigned(live) == USED


def test_a_policy_that_was_spoilt_does_not_keep_the_others_waiting(live: LiveEngine) -> None:
    with pytest.raises(Exception, match="attached more than once"):
        live.engine.policies.add_filter(
            policy_named(live.engine, "theirs").id, unit_id(live.engine, "Memory")
        )
    _, err = live.run(2, "setup", "--all-policies")
    assert "1 of 3 policies stay as they are: theirs: the engine has Memory twice" in err
    assert assigned(live)[:2] == ["ovirt-placement", COPY]


@pytest.mark.system
def test_parameters_reach_all_clusters(live: LiveEngine) -> None:
    live.run(0, "setup", "--all-policies")
    live.run(0, "setup", "--all-policies", "--property", "affinity_missing_unit=reject")
    found = {
        each.name: each.scheduling_properties.get("affinity_missing_unit")
        for each in live.engine.queries.state.clusters.values()
    }
    assert found == {"blue": "reject", "red": "reject", "green": "reject", "grey": None}
    live.run(0, "setup", "--all-policies", "--undo")
    # Nobody knows them any more: the engine has dropped them.
    assert not any(
        "affinity" in name
        for each in live.engine.queries.state.clusters.values()
        for name in each.scheduling_properties
    )


@pytest.mark.system
def test_a_cluster_that_went_from_one_of_ours_to_another_comes_back_to_where_it_began(
    live: LiveEngine,
) -> None:
    live.run(0, "setup", "--cluster", "red")
    live.run(0, "setup", "--policy", "second", "--cluster", "red", "--cluster", "green")
    live.run(0, "setup", "--policy", "theirs", "--cluster", "red")
    assert assigned(live)[:3] == ["none", "theirs", "second"]
    live.run(0, "setup", "--undo", "--policy", "theirs")
    assert assigned(live)[:3] == ["none", "second", "second"]
    live.run(0, "setup", "--undo", "--all-policies")
    assert assigned(live) == USED


def test_the_name_of_a_copy_that_another_policy_has_is_refused(live: LiveEngine) -> None:
    live.engine.policies.add(COPY, description="somebody's")
    _, err = live.run(2, "setup", "--all-policies")
    assert f"setup would name its copy of evenly_distributed {COPY}, but another policy has that name" in err
    assert live.changes == []
