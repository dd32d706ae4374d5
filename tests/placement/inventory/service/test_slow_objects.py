"""An object about which the engine takes long to answer holds up nothing that is known of any other."""

import random
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from ovirt_placement.inventory import client as inventory
from ovirt_placement.inventory.decision import NoSnapshot
from ovirt_simulator.generate import Sizes, generate
from ovirt_simulator.http.control import Disturbance
from tests.builders import host, snapshot, vm
from tests.configuration import write_configuration
from tests.examples import seeds
from tests.placement.engine.simulated import simulated
from tests.placement.inventory.running import ended, loaded, running
from tests.placement.inventory.stage import Stage, staged, stir, turns
from tests.processes import Forked
from tests.proxy.running import eventually

#: These assertions depend on real time.
pytestmark = [pytest.mark.system, pytest.mark.timing]

#: Much longer than all that a test does; a test that ends does not wait for it.
LONG = 300.0
#: Requests that are delayed: how many of them were made shows in what is left.
MANY = 1000
IMPATIENT_SECONDS = 0.05
#: Either VM can go from its host to the other.
STATE = snapshot(host("h1"), host("h2"), vm("slow", "h1"), vm("quick", "h1"))


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    state = generate(Sizes(clusters=2, hosts=8, vms=40, groups=8), 3)
    with staged(tmp_path, state, IMPATIENT_SECONDS) as made:
        yield made
        made.server.disturbances.clear()


def delay(stage: Stage, path: str) -> None:
    stage.server.disturbances.add(Disturbance(path=path, delay_seconds=LONG, times=MANY))


def requests(stage: Stage) -> int:
    """How many requests have met the delay."""
    (delayed,) = stage.server.disturbances.waiting
    return MANY - (delayed.times or 0)


def running_vms(stage: Stage) -> list[str]:
    return [vm.id for vm in stage.engine.snapshot().vms if vm.status == "up"]


def stop(stage: Stage, vm_id: str) -> None:
    """Have a VM stopped, and let the follower hear of it."""
    stage.engine.vms.stop(vm_id)
    turns(stage, 10)


def arrive(stage: Stage) -> None:
    """Let what was delayed be answered, and be read."""
    stage.server.disturbances.clear()
    eventually(lambda: stage.turn() or stage.known() == stage.shown())


def known_host(stage: Stage, vm_id: str) -> str | None:
    return stage.follower.snapshot().vm_by_id[vm_id].host


def test_what_is_known_of_the_others_is_as_fresh_as_ever(stage: Stage) -> None:
    slow, *others = running_vms(stage)[:4]
    delay(stage, f"/vms/{slow}")
    stop(stage, slow)
    for other in others:
        stop(stage, other)
        assert known_host(stage, other) is None
        assert stage.follower.moments.read_at == stage.now
    assert known_host(stage, slow) is not None
    assert requests(stage) == 1  # nothing is asked for twice at once
    assert stage.failures == 0
    arrive(stage)


@pytest.mark.parametrize("kind", ["hosts", "clusters", "affinitylabels"])
def test_so_it_is_with_a_host_a_cluster_and_the_labels(stage: Stage, kind: str) -> None:
    state = stage.engine.snapshot()
    one, other = running_vms(stage)[:2]
    delay(stage, f"/{kind}")
    stage.engine.hosts.deactivate(state.hosts[0].id)
    stage.engine.policies.update_cluster(state.clusters[0].id, ha_reservation=True)
    stage.engine.labels.add("label", vms=[one])
    stop(stage, other)
    assert known_host(stage, other) is None
    assert requests(stage) >= 1
    assert stage.follower.moments.read_at == stage.now
    arrive(stage)


def test_a_search_that_one_object_holds_up_is_given_up_for_all_others(stage: Stage) -> None:
    slow, other = running_vms(stage)[:2]
    delay(stage, f"/vms.*{slow}")
    for each in (slow, other):
        stage.engine.vms.stop(each)
    eventually(lambda: stage.turn() or known_host(stage, other) is None)
    assert requests(stage) >= 1
    stop(stage, running_vms(stage)[0])
    assert stage.follower.moments.read_at == stage.now
    arrive(stage)


def test_an_engine_that_takes_long_about_many_is_not_said_to_be_followed(stage: Stage) -> None:
    read_at = stage.follower.moments.read_at
    delay(stage, "/vms")
    for each in running_vms(stage)[:6]:
        stage.engine.vms.stop(each)
    eventually(lambda: stage.turn() or requests(stage) > 4)
    stood = stage.follower.moments.read_at
    turns(stage, 5)
    assert read_at <= stood == stage.follower.moments.read_at < stage.now
    arrive(stage)
    assert stage.follower.moments.read_at == stage.now


@pytest.mark.parametrize("seed", seeds(3))
def test_no_answer_that_comes_late_loses_a_change(stage: Stage, seed: int) -> None:
    dice = random.Random(seed)
    for number in range(120):
        stir(stage, dice)
        if number % 7 == 0:
            stage.server.disturbances.clear()
            one = dice.choice(stage.engine.snapshot().vms if number % 2 else stage.engine.snapshot().hosts)
            delay(stage, re.escape(one.id))
        stage.turn()
    stage.server.disturbances.clear()
    stage.settle()
    arrive(stage)


def test_the_service_publishes_what_is_known_of_the_others_and_a_late_answer_when_it_comes(
    tmp_path: Path,
) -> None:
    with simulated(STATE) as (engine, server, _):
        file = write_configuration(tmp_path, server.api_url, inventory="interval_seconds = 0.2\n")
        config = loaded(file)

        def migrate(name: str) -> None:
            engine.vms.migrate(name)
            engine.advance(60)

        def host_of(name: str) -> str | None:
            with suppress(NoSnapshot):
                return inventory.snapshot(config=config, max_age=0.5, deadline=2).vm_by_id[name].host
            return None

        slow = Disturbance(method="GET", path="/vms/slow", delay_seconds=LONG, times=None)
        server.disturbances.add(slow)
        with running(file) as service:
            assert isinstance(service, Forked)
            inventory.snapshot(config=config, max_age=0)
            migrate("slow")
            eventually(lambda: "VM slow: the engine takes long to answer" in service.log)
            migrate("quick")
            eventually(lambda: host_of("quick") == "h2")
            assert host_of("slow") == "h1"
            server.disturbances.clear()
            eventually(lambda: host_of("slow") == "h2")
            eventually(lambda: "VM slow: the engine answers in time again" in service.log)
            assert "Traceback" not in ended(service)
