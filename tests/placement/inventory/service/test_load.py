"""What following a busy engine costs it, and that nothing is seen later for it."""

import gc
import random

import pytest

from ovirt_placement.engine.events import read_events
from ovirt_placement.engine.topology import reread_vms
from ovirt_placement.inventory.service.schedule import SOON_SECONDS, Rereads, Subject, SubjectKind
from ovirt_service.daemon import Garbage
from tests import builders as build
from tests.placement.inventory.stage import Stage

VM = Subject(SubjectKind.VM, "v")


@pytest.fixture
def asked(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The requests that are made, until somebody forgets them."""
    found: list[str] = []
    get = stage.connection.get

    def counted(path: str, **query: str | int | bool) -> bytes:
        found.append(path)
        return get(path, **query)

    monkeypatch.setattr(stage.connection, "get", counted)
    return found


def stir(stage: Stage, dice: random.Random) -> None:
    for vm in dice.sample(stage.engine.snapshot().vms, 5):
        if vm.status == "down":
            stage.engine.vms.start(vm.id)
        elif vm.status == "up":
            stage.engine.vms.stop(vm.id)


@pytest.mark.system
def test_however_much_happens_a_turn_costs_three_requests_and_a_minute_fewer_than_three_hundred(
    stage: Stage, asked: list[str]
) -> None:
    dice, most, together, turns = random.Random(1), 0, 0, 50
    for _ in range(turns):
        stir(stage, dice)
        asked.clear()
        stage.turn(0.6)  # as often as decisions need it
        most = max(most, len(asked))
        together += len(asked)
    assert most == 3
    # In a minute, with twenty for the larger readings besides them.
    assert together / (turns * 0.6) * 60 + 20 < 290
    stage.settle()
    assert stage.known() == stage.shown()


def test_nobody_waits_for_the_memory_of_hosts_but_after_a_rest(stage: Stage, asked: list[str]) -> None:
    dice = random.Random(2)
    stage.begin()
    stage.turn(10.0)
    stir(stage, dice)
    stage.engine.advance(1.0)
    stage.now += 1.0
    asked.clear()
    stage.follower.turn()
    assert "/hosts" in asked, "nothing was read of them lately"
    readings = 0
    for _ in range(12):
        stir(stage, dice)
        stage.engine.advance(0.5)
        stage.now += 0.5
        asked.clear()
        stage.follower.turn()
        assert "/hosts" not in asked
        stage.follower.follow_up()
        readings += "/hosts" in asked
    assert 3 <= readings <= 4, "every 1.5 s"


@pytest.mark.system
def test_what_shows_late_is_seen_in_the_next_turn_even_if_no_effect_is_known(stage: Stage) -> None:
    for vm in stage.engine.snapshot().vms[:12]:
        last = max((event.id for event in read_events(stage.connection, at_most=1)), default=0)
        stage.engine.vms.edit(vm.id, ha=not vm.ha)
        heard, turns = False, 0
        while turns * 0.2 < SOON_SECONDS:
            stage.turn(0.2)
            heard = heard or any(
                event.vm == vm.id for event in read_events(stage.connection, after=last, at_most=50)
            )
            turns += heard
            shown = reread_vms(stage.connection, [vm.id])[vm.id]
            assert not heard or stage.follower.snapshot().vm_by_id[vm.id].ha == shown.ha


def test_what_is_read_along_is_read_again_when_it_must() -> None:
    rereads = Rereads()
    rereads.ask(VM, 10.0)
    rereads.read(VM, build.vm("v"), 10.0)
    assert rereads.due(10.4) == ()
    assert rereads.due(10.4, SOON_SECONDS) == (VM,)
    rereads.read(VM, build.vm("v"), 10.4)
    assert rereads.due(11.0) == (VM,)


def test_garbage_is_collected_when_it_is_due_and_never_else(monkeypatch: pytest.MonkeyPatch) -> None:
    collections: list[float] = []
    garbage = Garbage(alone=True)
    try:
        assert not gc.isenabled()
        for now in range(0, 100, 5):
            monkeypatch.setattr(gc, "collect", lambda now=now: collections.append(now))
            garbage.collect(float(now))
    finally:
        gc.enable()
    assert collections == [0, 30, 60, 90]
