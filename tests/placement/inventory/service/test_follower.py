"""The follower against a simulated engine, by simulated time: it comes to know what the engine shows."""

import random
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from msgspec.structs import replace

from ovirt_placement.engine.requests import Doubts
from ovirt_placement.inventory.on_demand import NO_DEMANDS, NO_STATISTICS, Demands
from ovirt_placement.inventory.service.schedule import ReconciliationScope
from ovirt_placement.inventory.service.view import Reading, read, read_plausible
from ovirt_placement.model.snapshot import HOST_STATISTICS, HOST_TAGS, VM_STATISTICS
from ovirt_simulator.core.backend import MigrationFault
from ovirt_simulator.core.entities import UnitType
from ovirt_simulator.core.messages import Rejected
from ovirt_simulator.generate import Sizes, generate
from ovirt_simulator.http.control import Disturbance
from tests.builders import cluster, host, snapshot, vm
from tests.examples import seeds
from tests.placement.inventory.stage import Stage, staged, stir, turns


@pytest.mark.system
@pytest.mark.parametrize("seed", seeds(3))
def test_after_whatever_happened_all_is_known_without_reading_all(stage: Stage, seed: int) -> None:
    dice = random.Random(seed)
    whole_at = stage.follower.moments.whole_at
    for _ in range(150):
        stir(stage, dice)
        stage.turn()
    stage.settle()
    assert stage.known() == stage.shown()
    assert stage.follower.moments.whole_at == whole_at
    assert stage.follower.moments.read_at == stage.now


@pytest.mark.system
@pytest.mark.parametrize("seed", seeds(3))
def test_no_accident_between_engine_and_follower_loses_a_change(stage: Stage, seed: int) -> None:
    dice = random.Random(seed)
    accidents = (
        Disturbance(path="/events", status=500, times=2),
        Disturbance(path="/vms", status=503, times=1),
        Disturbance(path="/hosts", drop="answer", times=1),
        Disturbance(path="", drop="request", times=2),
        Disturbance(path="/clusters", status=500, times=1),
    )
    for number in range(150):
        stir(stage, dice)
        if number % 5 == 0:
            stage.server.disturbances.add(dice.choice(accidents))
        if number % 11 == 0:
            stage.server.tokens.revoke_all()
        stage.turn()
    stage.server.disturbances.clear()
    stage.settle()
    assert stage.failures > 5
    assert stage.known() == stage.shown()


@pytest.mark.parametrize("deed", ["edit", "create", "change_cluster"])
def test_what_the_dialog_of_a_vm_changes_of_groups_and_labels_is_known(stage: Stage, deed: str) -> None:
    vms, state = stage.engine.vms, stage.engine.queries.state
    group = next(iter(state.groups.values()))
    label = stage.engine.labels.add("label", vms=group.vms)
    turns(stage, 30)
    if deed == "create":
        changed = vms.create(group.cluster, name="new").id
    else:
        changed = next(vm.id for vm in state.vms.values() if vm.id in group.vms)
        stage.engine._backend.state.put_vm(replace(state.vms[changed], host=None, status="down"))
    if deed == "change_cluster":
        (other,) = state.clusters.keys() - {group.cluster}
        vms.change_cluster(changed, other)
    else:
        members = tuple({*group.vms} ^ {changed})
        state.put(state.groups, replace(group, vms=members))
        state.put(state.labels, replace(label, vms=members))
    if deed == "edit":
        vms.edit(changed, description="x")
    turns(stage)
    assert stage.known().affinity_groups == stage.shown().affinity_groups
    assert stage.known().affinity_labels == stage.shown().affinity_labels


def test_a_host_that_cannot_be_emptied_gets_no_vms_either(tmp_path: Path) -> None:
    state = snapshot(
        cluster("c1"),
        host("h1", cluster="c1", free_mb=100),
        host("h2", cluster="c1"),
        vm("comes", "h1", cluster="c1"),
        vm("stays", "h2", cluster="c1", needs_mb=4000),
    )
    with staged(tmp_path, state) as stage:
        stage.engine.faults.expect(MigrationFault(hang=True))
        stage.engine.vms.migrate("comes")
        turns(stage, 20)
        assert stage.known().vm_by_id["comes"].migrating_to == "h2"
        stage.engine.hosts.deactivate("h2")  # the engine cancels the migration without a word
        turns(stage, 10)
        assert stage.known().vm_by_id["comes"] == stage.shown().vm_by_id["comes"]
        assert stage.known().vm_by_id["comes"].status == "up"


def silence(stage: Stage, number: int) -> None:
    """Take turns while the engine says nothing of what happens."""
    stage.server.disturbances.add(Disturbance(path="/events", status=503, times=None))
    turns(stage, number)
    stage.server.disturbances.clear()


def test_while_turns_fail_nothing_is_said_to_be_fresh_and_after_a_long_silence_all_is_read_again(
    stage: Stage,
) -> None:
    before = stage.follower.moments
    silence(stage, 5)
    assert stage.follower.moments.read_at == before.read_at
    stage.turn()
    assert stage.follower.moments.read_at == stage.now
    assert stage.follower.moments.whole_at == before.whole_at
    silence(stage, 40)
    turns(stage, 3)
    assert stage.follower.moments.whole_at > before.whole_at
    assert stage.known() == stage.shown()


def test_a_change_whose_reading_failed_is_not_taken_for_known(stage: Stage) -> None:
    vm = next(vm for vm in stage.engine.snapshot().vms if vm.status == "down")
    stage.server.disturbances.add(Disturbance(path=f"/vms/{vm.id}$", status=500, times=None))
    stage.engine.vms.start(vm.id)
    turns(stage, 20)
    assert stage.failures > 0
    assert stage.follower.moments.read_at < stage.now - 2
    stage.server.disturbances.clear()
    stage.turn()
    known = stage.follower.snapshot().vm_by_id[vm.id]
    assert known.host == stage.engine.snapshot().vm_by_id[vm.id].host is not None


@pytest.mark.system
def test_events_that_jump_back_make_all_be_read_again(tmp_path: Path) -> None:
    state = generate(Sizes(clusters=1, hosts=3, vms=6, groups=1), 3)
    with staged(tmp_path, state) as stage, staged(tmp_path, state) as restored:
        for vm in stage.engine.snapshot().vms:
            with suppress(Rejected):
                stage.engine.vms.migrate(vm.id)
        stage.settle()
        crashed = next(vm.id for vm in stage.engine.snapshot().vms if vm.status == "up")
        stage.engine.vms.crash(crashed)
        turns(stage, 20)
        assert stage.follower.snapshot().vm_by_id[crashed].crashed
        # The engine's database is restored: another log, another state, at the same address.
        whole_at = stage.follower.moments.whole_at
        stage.connection.url = restored.connection.url
        stage.connection.settings = restored.connection.settings
        stage.connection._sso = restored.connection._sso
        with suppress(EOFError), stage.connection.session():
            raise EOFError  # a session that breaks is not used again
        stage.follower.turn()
        assert not stage.follower.believable
        turns(stage, 3)
        assert stage.follower.moments.whole_at > whole_at
        assert stage.known() == restored.shown()
        # Events have lower numbers than those of the log that is gone.
        restored.engine.vms.stop(crashed)
        for _ in range(20):
            restored.engine.advance(1.0)
            stage.turn()
        assert stage.follower.snapshot().vm_by_id[crashed].host is None
        assert not stage.follower.snapshot().vm_by_id[crashed].crashed


def test_larger_readings_do_not_undo_what_was_read_meanwhile(stage: Stage) -> None:
    vm = next(vm for vm in stage.engine.snapshot().vms if vm.status == "up")
    slow = read(stage.connection, ReconciliationScope.WHOLE, NO_DEMANDS, stage.now)
    stage.engine.vms.stop(vm.id)
    turns(stage, 10)
    assert stage.follower.snapshot().vm_by_id[vm.id].host is None
    stage.follower.hand_in(slow)  # it began before, and ends now
    stage.turn()
    assert stage.follower.snapshot().vm_by_id[vm.id].host is None


@pytest.mark.system
def test_statistics_come_with_the_moment_they_were_read_and_stay_with_what_is_read_again(
    stage: Stage,
) -> None:
    assert stage.follower.moments.statistics_at == float("-inf")
    stage.read(
        ReconciliationScope.STATISTICS, Demands(statistics=frozenset({HOST_STATISTICS, VM_STATISTICS}))
    )
    read_at = stage.now
    turns(stage, 60)
    assert stage.follower.moments.statistics_at == read_at
    before = stage.follower.snapshot()
    assert all(host.cpu_percent is not None for host in before.hosts if host.up)
    up = next(vm for vm in before.vms if vm.status == "up" and vm.movable)
    assert up.usage_mem_percent
    with suppress(Rejected):
        stage.engine.vms.migrate(up.id)
    stage.settle()
    assert stage.follower.snapshot().vm_by_id[up.id].usage_mem_percent == up.usage_mem_percent


def test_at_rest_a_turn_costs_one_request_and_changes_nothing(stage: Stage) -> None:
    stage.settle()
    before = stage.follower.snapshot()
    others = "/(vms|hosts|clusters|affinitylabels|datacenters)"
    stage.server.disturbances.add(Disturbance(path=others, status=500, times=None))
    turns(stage, 10)
    assert stage.failures == 0
    assert stage.follower.snapshot() is before


TAGGED = snapshot(cluster("c1"), host("h1", cluster="c1", tags=("rack-1",)), vm("a", "h1", cluster="c1"))
STATISTICS = ReconciliationScope.STATISTICS
TAGS = frozenset({HOST_TAGS})


@pytest.fixture
def tagged(tmp_path: Path) -> Iterator[Stage]:
    with staged(tmp_path, TAGGED) as found:
        yield found


def read_tags(tagged: Stage, needs: Demands) -> None:
    tagged.read(STATISTICS, needs)
    tagged.turn()
    assert tagged.follower.lacking == NO_STATISTICS


def test_tags_of_hosts_are_missed_until_they_are_read_and_asked_for_when_a_rule_needs_them(
    tagged: Stage,
) -> None:
    read_tags(tagged, Demands(statistics=frozenset({HOST_STATISTICS})))
    tagged.follower.demands = Demands(statistics=TAGS)  # a rule came that goes by them
    tagged.turn()
    assert tagged.follower.lacking == TAGS
    assert tagged.larger[STATISTICS].since == tagged.now
    read_tags(tagged, tagged.follower.needs)
    view = tagged.follower.snapshot()
    assert view.host_by_id["h1"].tags == ("rack-1",)
    # A host that comes has none before they are read.
    needed = tagged.larger[STATISTICS].since
    more = replace(view.hosts[0], id="h2", name="h2", tags=())
    tagged.follower.hand_in(Reading(tagged.now, hosts=(*view.hosts, more)))
    turns(tagged, 2)
    assert tagged.follower.lacking == TAGS
    assert tagged.larger[STATISTICS].since > needed


@pytest.fixture
def with_policy(tmp_path: Path) -> Iterator[Stage]:
    with staged(tmp_path, snapshot(cluster("c1"), host("h1", cluster="c1"))) as made:
        made.engine.policies.add("ours")
        made.engine.policies.update_cluster("c1", policy_name="ours")
        made.settle()
        yield made


def policy_id(with_policy: Stage) -> str:
    (found,) = (each.id for each in with_policy.engine.queries.state.policies.values() if each.name == "ours")
    return found


def add_weight(with_policy: Stage) -> None:
    units = with_policy.engine.queries.state.units.values()
    wanted = (UnitType.WEIGHT, "OptimalForHaReservation")
    (unit,) = (each.id for each in units if (each.type, each.name) == wanted)
    with_policy.engine.policies.attach("weights", policy_id(with_policy), unit, factor=7)


def known_factor(with_policy: Stage, *, settled: bool = True) -> int | None:
    if settled:
        with_policy.settle()
    return with_policy.follower.snapshot().cluster_by_id["c1"].policy.get("ha_weight")


@pytest.mark.system
def test_a_larger_reading_soon_after_a_change_does_not_bring_back_what_was(with_policy: Stage) -> None:
    doubts, whole = Doubts(), ReconciliationScope.WHOLE
    read_plausible(doubts, with_policy.connection, whole, NO_DEMANDS, with_policy.now)
    add_weight(with_policy)
    assert known_factor(with_policy) == 7
    with_policy.follower.hand_in(
        read_plausible(doubts, with_policy.connection, whole, NO_DEMANDS, with_policy.now)
    )
    with_policy.turn()
    assert known_factor(with_policy, settled=False) == 7


@pytest.mark.system
def test_a_cluster_that_changes_after_a_silence_does_not_bring_back_what_was(with_policy: Stage) -> None:
    add_weight(with_policy)
    silence(with_policy, 40)
    assert known_factor(with_policy) == 7
    with_policy.engine.policies.update_cluster("c1", description="changed")
    assert known_factor(with_policy) == 7


@pytest.mark.system
def test_a_policy_that_is_saved_after_its_event_is_known_in_the_end(with_policy: Stage) -> None:
    saved = with_policy.engine._backend.state
    add_weight(with_policy)
    later = saved.policies[policy_id(with_policy)]
    saved.put(saved.policies, replace(later, weights=()))
    turns(with_policy, 3)
    assert known_factor(with_policy, settled=False) is None
    saved.put(saved.policies, later)
    assert known_factor(with_policy) == 7
