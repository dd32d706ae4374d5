"""What `ovirt-placement doctor` says of scheduling policies and of rules that they do not regard."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from ovirt_placement.answers import setup
from ovirt_placement.answers.doctor import FoundProblem, policies
from ovirt_placement.answers.status import CycleRecord, EnforcementRecord
from ovirt_placement.engine.policies import PolicyContent, PolicyHead, PolicyUnit
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.core.entities import UnitType
from ovirt_simulator.http.control import User, default_users
from tests.builders import cluster, host, rule, snapshot, vm
from tests.placement.cli.doctor.examining import EMPTY, RULED, findings
from tests.placement.cli.live_engine import LiveEngine, Starting
from tests.placement.cli.setup.policies import OURS, TWINS, policy_named, unit_id
from tests.portal import Portal


def remove(engine: Engine, kind: UnitType, name: str) -> None:
    """Take a unit out of our policy."""
    engine.policies.remove_unit(policy_named(engine, OURS).id, unit_id(engine, name, kind))


def test_rules_that_the_policy_has_no_unit_for(starting: Starting) -> None:
    """Hard rules by a filter, soft ones and HA by a weight; a factor of 0 weighs nothing."""
    with starting(RULED) as live:
        assert findings(live) == []  # the engine's own units of policy none look at all of them
        live.run(0, "setup --cluster blue --factor SoftAffinityWeight=0")
        assert about_weights(live)["sentence"] == (
            "cluster blue: soft rules of the groups near mean nothing when VMs are placed:"
            " its policy ovirt-placement has SoftAffinityWeight with factor 0"
        )
        for kind, name in (
            (UnitType.FILTER, "AffinityFilter"),
            (UnitType.FILTER, "VmAffinityGroups"),
            (UnitType.FILTER, "HostAffinityFilter"),
            (UnitType.FILTER, "VmToHostsAffinityGroups"),
            (UnitType.WEIGHT, "HaReservationWeight"),
            (UnitType.WEIGHT, "OptimalForHaReservation"),
        ):
            remove(live.engine, kind, name)
        assert [what.partition(" when VMs")[0] for what in findings(live)] == [
            "cluster blue: hard rules of the groups tied mean nothing",
            "cluster blue: hard rules of the groups tied mean nothing",
            "cluster blue: soft rules of the groups near mean nothing",
            "cluster blue: HA reservation means nothing",
        ]


def test_a_factor_of_0_is_repaired_as_it_is_said(starting: Starting) -> None:
    with starting(RULED) as live:
        live.run(0, "setup --cluster blue --factor SoftAffinityWeight=0")
        carry_out(live, about_weights(live)["remedy"])
        assert findings(live) == []


def own_policy(weights: dict[str, int], **units: PolicyUnit) -> policies.InUse:
    head = PolicyHead("p1", "own", "", locked=False, properties={})
    return policies.InUse(PolicyContent(head, weights, {}, {}), setup.Units(units))


def test_a_unit_that_no_unit_of_the_engines_does_the_same_as() -> None:
    blue = cluster("c1", name="blue")
    few = rule("few", "at_most_per_host", "v1", cluster="c1", most=1, enforcing=False)
    state = snapshot(blue, host("h1", cluster="c1"), vm("v1", "h1", cluster="c1"), few)
    found = [one.sentence for one in policies.examine_rules(state, blue, own_policy({}))]
    assert any(one.endswith("its policy own lacks PlacementRuleWeight") for one in found)


def test_units_of_others_put_none_of_ours_to_work() -> None:
    state = snapshot(cluster("c1", name="blue"))
    head = PolicyHead("p1", "own", "", locked=False, properties={})
    units = setup.Units({"u1": PolicyUnit("Rack", internal=False, enabled=True, type="filter")})
    policy = policies.InUse(PolicyContent(head, {"u1": 0}, {}, {}), units)
    (idle,) = policies.unused_units(state, {"c1": policy})
    assert idle.startswith("no cluster's scheduling policy has our units")


@pytest.mark.parametrize(
    ("leader", "error", "kinds"),
    [
        ("a:1", "cluster blue: no answer", ["enforcer_fails"]),
        ("a:1", None, []),
        # Of one that runs no more the last cycle is no matter.
        (None, "cluster blue: no answer", []),
    ],
)
def test_an_enforcer_that_fails_for_a_cluster_is_a_finding(
    leader: str | None, error: str | None, kinds: list[str]
) -> None:
    cycle = CycleRecord(ended="", age_seconds=1.0, error=error)
    enforcer = EnforcementRecord(mode="enforce", configured_mode="enforce", leader=leader, last_cycle=cycle)
    found = [one for one in policies.examine_enforcer(enforcer, "x") if isinstance(one, FoundProblem)]
    assert [one.kind for one in found] == kinds
    assert all("cluster blue: no answer" in one.sentence for one in found)


@pytest.mark.system
def test_event_reports_the_engine_once_a_day(starting: Starting) -> None:
    with starting(RULED, clock=datetime.now(UTC)) as live:

        def reported() -> list[Any]:
            return [event for event in live.engine.queries.events() if event.origin == "ovirt-placement"]

        live.run(0, "setup --cluster blue --factor SoftAffinityWeight=0")
        findings(live)
        assert reported() == []
        findings(live, "--event")
        (event,) = reported()
        assert (event.severity, event.cluster.id) == ("warning", "c1")
        assert event.description.startswith("cluster blue: soft rules of the groups near mean nothing")
        findings(live, "--event")
        Portal(live.engine).dismiss_event(event.id)
        findings(live, "--event")  # nor again after it was dismissed
        assert reported() == []
        live.engine.advance(24 * 3600)
        assert any("the engine's clock is" in what for what in findings(live, "--event"))
        assert len(reported()) == 1


def test_who_may_not_add_events_is_reported(starting: Starting) -> None:
    users = {**default_users("password"), "reader@internal": User(password="password", admin=True)}
    blue = cluster("c1", name="blue", policy={"vm_affinity_weight": 0})
    state = snapshot(blue, *RULED.vms, *RULED.hosts, RULED.affinity_groups[0])
    with starting(state, users=users, username="reader@internal") as live:
        assert any("needs the permit inject_external_events" in what for what in findings(live, "--event"))


@pytest.mark.parametrize(("ours", "engines"), TWINS.items())
@pytest.mark.system
def test_our_weights_without_the_engines_alongside_them(starting: Starting, ours: str, engines: str) -> None:
    """Somebody has taken it out; setup adds it again."""
    with starting(EMPTY) as live:
        live.run(0, "setup --cluster blue")
        remove(live.engine, UnitType.WEIGHT, engines)
        found = about_weights(live)
        assert f"has {ours} without the engine's weight {engines}" in found["sentence"]
        carry_out(live, found["remedy"])
        assert findings(live) == []


@pytest.mark.system
def test_the_engines_weight_counts_for_less_than_ours(starting: Starting) -> None:
    with starting(EMPTY) as live:
        live.run(0, "setup --cluster blue --factor SoftAffinityWeight=50")
        for factor in (49, 0):
            live.run(0, "setup", "--factor", f"VmAffinityGroups={factor}")
            found = about_weights(live)
            assert (
                f"the engine's weight VmAffinityGroups has the factor {factor}, and SoftAffinityWeight has 50"
            ) in found["sentence"]
            carry_out(live, found["remedy"])
            assert findings(live) == []
        live.run(0, "setup --factor VmAffinityGroups=51")
        assert findings(live) == []


def test_a_weight_of_ours_that_counts_for_nothing_needs_none_alongside_it(starting: Starting) -> None:
    with starting(EMPTY) as live:
        live.run(0, "setup --cluster blue --factor SoftAffinityWeight=0")
        remove(live.engine, UnitType.WEIGHT, "VmAffinityGroups")
        assert findings(live) == []


def about_weights(live: LiveEngine) -> dict[str, Any]:
    """The only finding besides that of the inventory."""
    found: list[dict[str, Any]] = live.data(1, "doctor")["findings"]
    (only,) = (each for each in found if not each["sentence"].startswith("no inventory"))
    return only


def carry_out(live: LiveEngine, remedy: str) -> None:
    live.run(0, *remedy.removeprefix("run ovirt-placement ").split())


def spoilt(engine: Engine) -> None:
    with pytest.raises(Exception, match="more than once"):
        engine.policies.attach(
            "filters", policy_named(engine, OURS).id, unit_id(engine, "Memory", UnitType.FILTER)
        )


@pytest.mark.parametrize(
    ("spoil", "what"),
    [
        (
            lambda engine: remove(engine, UnitType.LOAD_BALANCING, "HaReservationBalance"),
            "the policy ovirt-placement has no balance: that stops the load balancing of all",
        ),
        (spoilt, "the engine has Memory twice in the policy ovirt-placement, and refuses every change"),
        (
            lambda engine: remove(engine, UnitType.FILTER, "VmAffinityGroups"),
            "has AffinityFilter without the engine's filter VmAffinityGroups",
        ),
    ],
    ids=["no balance", "a unit twice", "our filter without the engine's"],
)
def test_traps_of_the_engine_in_a_policy(
    starting: Starting, spoil: Callable[[Engine], None], what: str
) -> None:
    with starting(EMPTY) as live:
        live.run(0, "setup --cluster blue")
        spoil(live.engine)
        (found,) = findings(live)
    assert what in found
