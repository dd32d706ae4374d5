"""Disks, NICs and owners in the follower's view: read where keys refer to them, in whatever order."""

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from ovirt_placement.engine.topology import Details
from ovirt_placement.engine.vms import Detail, VmDetails
from ovirt_placement.inventory.on_demand import Demands, referred
from ovirt_placement.inventory.service.schedule import ReconciliationScope
from ovirt_placement.inventory.service.view import Reading, read
from ovirt_placement.model import Disk, Network, Nic, Snapshot, Vm, VnicProfile
from ovirt_placement.model.record import LEVELS, STICKY
from ovirt_placement.rules.placement_keys.hierarchy import resources
from ovirt_simulator.core.entities import USER_ROLE, USER_VM_MANAGER
from ovirt_simulator.generate import Sizes, generate
from ovirt_simulator.http.control import Disturbance
from tests import builders as build
from tests.examples import seeds
from tests.placement.inventory.stage import Stage, staged, stir, turns
from tests.portal import Portal

EVERY_LEVEL = frozenset(LEVELS) - {STICKY}
#: In the order of their names, as the engine lists them.
NETWORKS = (Network(id="back", name="back"), Network(id="front", name="front"))
PROFILES = (
    VnicProfile(id="bulk", name="bulk", network="back"),
    VnicProfile(id="gold", name="gold", network="front"),
)
DESCRIBED = {"description": "x"}


FURNITURE = (("data", "slow"), ("root", "fast"))


def furnished(vm: Vm, number: int) -> Vm:
    data, root = (Disk(f"{vm.id}-{what}", what == "root", speed) for what, speed in FURNITURE)
    bulk = Nic(id=f"{vm.id}-nic2", name="nic2", vnic_profile="bulk")
    other = Nic(id=f"{vm.id}-nic1", name="nic1", vnic_profile=("gold", None)[number % 2])
    return replace(vm, owner=f"user{number % 3}", disks=(data, root), nics=(bulk, other))


def furnished_state() -> Snapshot:
    state = generate(Sizes(clusters=2, hosts=6, vms=30, groups=4), 3)
    vms = tuple(furnished(vm, number) for number, vm in enumerate(state.vms))
    return replace(state, vms=vms, networks=NETWORKS, vnic_profiles=PROFILES)


def watch(stage: Stage, *levels: str) -> None:
    """Set keys on these levels, and let what they refer to be read."""
    stage.follower.demands = Demands(referred(levels))
    for _ in range(2):
        stage.turn()


def known(stage: Stage, vm_id: str) -> Vm:
    return stage.follower.snapshot().vm_by_id[vm_id]


def have(stage: Stage) -> tuple[bool, bool]:
    """Whether VMs are known with disks, and with NICs; all are known alike."""
    (found,) = {(bool(vm.disks), bool(vm.nics)) for vm in stage.follower.snapshot().vms}
    return found


def some_vm(stage: Stage) -> Vm:
    return as_state_files_have(next(iter(stage.engine.queries.state.vms.values())))


def as_state_files_have(vm: Vm) -> Vm:
    """Without what only the simulator knows of disks and NICs."""
    disks = (Disk(id=one.id, bootable=one.bootable, profile=one.profile) for one in vm.disks)
    nics = (Nic(id=one.id, name=one.name, vnic_profile=one.vnic_profile) for one in vm.nics)
    return replace(vm, disks=tuple(disks), nics=tuple(nics))


def refuse(stage: Stage, path: str) -> None:
    """Let every request that fits fail from now on; the tests count the failures."""
    stage.server.disturbances.add(Disturbance(path=path, status=500, times=None))


DETAILED_LEVELS = {
    f"{what}{offer}" for what in ("customer", "disk", "network", "nic") for offer in ("", "_offer")
}


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with staged(tmp_path, furnished_state()) as made:
        yield made


@pytest.mark.parametrize("level", sorted(EVERY_LEVEL))
def test_a_key_on_any_level_finds_what_it_refers_to(stage: Stage, level: str) -> None:
    """The state that the engine was started with shows what stands on each level."""
    watch(stage, level)
    reported, found = stage.engine.snapshot(), stage.follower.snapshot()
    expected = {
        (vm.id, place, resource)
        for vm in reported.vms
        for place, resource in resources(reported, vm)
        if place == level
    }
    assert expected or level in {"billing_entity", "image", "image_offer", "server_offer"}
    for vm in found.vms:
        expected -= {(vm.id, place, resource) for place, resource in resources(found, vm)}
    assert not expected


def test_without_such_keys_nothing_of_it_is_ever_asked_for(stage: Stage) -> None:
    refuse(stage, "follow=.*(tags|permissions|nics|disk)|/(networks|vnicprofiles|permissions|nics|tags)")
    watch(stage, *EVERY_LEVEL - DETAILED_LEVELS)
    vm = some_vm(stage)
    stage.engine.vms.add_nic(vm.id, name="nic3", vnic_profile="gold")
    Portal(stage.engine).grant(USER_ROLE.id, "x", vm=vm.id)
    Portal(stage.engine).add_vnic_profile("new", "front")
    turns(stage, 30)
    assert stage.failures == 0
    assert all(not (vm.disks or vm.nics or vm.owner) for vm in stage.follower.snapshot().vms)


@pytest.mark.parametrize(
    ("level", "others"),
    [
        ("disk", "nics|permissions|tags|/networks|/vnicprofiles"),
        ("nic_offer", "disk|permissions|tags"),
        ("customer", "disk|nics|/networks|/vnicprofiles"),
    ],
)
def test_only_what_keys_refer_to_is_read(stage: Stage, level: str, others: str) -> None:
    refuse(stage, others)
    watch(stage, level)
    stage.engine.vms.edit(some_vm(stage).id, **DESCRIBED)
    turns(stage, 20)
    assert stage.failures == 0


@pytest.mark.system
@pytest.mark.parametrize("seed", seeds(3))
def test_after_whatever_happened_all_details_are_known(stage: Stage, seed: int) -> None:
    dice = random.Random(seed)
    watch(stage, *EVERY_LEVEL)
    read_at = stage.details_at
    for _ in range(120):
        stir(stage, dice, *deeds(stage, dice))
        stage.turn()
    stage.settle()
    shown = stage.shown(devices=True)
    assert stage.known() == shown
    assert stage.details_at == read_at, "the events were enough"
    assert {vm.id: vm.owner for vm in shown.vms} == {vm.id: vm.owner for vm in stage.engine.snapshot().vms}


def deeds(stage: Stage, dice: random.Random) -> tuple[Callable[[str], object], ...]:
    """What may happen to a VM's disks, NICs and owner."""
    portal, add_nic = Portal(stage.engine), stage.engine.vms.add_nic
    vm = stage.engine.queries.state.vms.__getitem__
    profile = dice.choice(tuple(stage.engine.queries.state.vnic_profiles.values())).id
    known = tuple(stage.engine.queries.state.tags.values()) or (
        portal.add_tag("pk-customer-acme"),
        portal.add_tag("other"),
    )
    tag = dice.choice(known).id
    name = f"n{dice.randrange(100)}"
    granted = [one for one in stage.engine.queries.state.permissions.values() if one.vm is not None]
    return (
        lambda vm_id: add_nic(vm_id, name=name, vnic_profile=profile),
        lambda vm_id: portal.remove_nic(vm_id, vm(vm_id).nics[0].id) if len(vm(vm_id).nics) > 1 else None,
        lambda vm_id: portal.attach_disk(vm_id, Disk(id=name, bootable=False, profile="fast")),
        lambda vm_id: [portal.attach_disk(vm_id, replace(one, profile="fast")) for one in vm(vm_id).disks],
        lambda vm_id: portal.detach_disk(vm_id, vm(vm_id).disks[0].id) if len(vm(vm_id).disks) > 1 else None,
        lambda _: portal.add_vnic_profile(name, dice.choice(NETWORKS).id),
        lambda vm_id: portal.grant(USER_VM_MANAGER.id, name, vm=vm_id, is_group=dice.random() < 0.5),
        lambda vm_id: portal.grant(USER_ROLE.id, name, vm=vm_id),
        lambda _: portal.revoke(dice.choice(granted).id),
        lambda vm_id: portal.attach_tag(tag, vm_id),
        lambda vm_id: portal.detach_tag(tag, vm_id),
        lambda vm_id: portal.grant(USER_VM_MANAGER.id, name, cluster=vm(vm_id).cluster),
        lambda _: portal.add_vm(
            furnished(build.vm(f"new-{name}", cluster=some_vm(stage).cluster), dice.randrange(9))
        ),
    )


def test_keys_on_a_new_level_count_when_the_reading_is_in_and_the_view_is_believed_meanwhile(
    stage: Stage,
) -> None:
    refuse(stage, "page")
    stage.follower.demands = Demands(Detail.DISKS)
    turns(stage)
    assert stage.follower.believable
    assert stage.failures > 0
    assert (have(stage), stage.follower.moments.details_at) == ((False, False), float("-inf"))
    stage.server.disturbances.clear()
    turns(stage, 2)
    assert (have(stage), stage.follower.moments.details_at) == ((True, False), stage.details_at)
    refuse(stage, "page")
    for levels in (("disk", "nic"), ()):
        watch(stage, *levels)
        assert stage.follower.moments.details_at == float("-inf")


def test_what_no_key_refers_to_any_more_is_forgotten_and_read_again_when_one_does(stage: Stage) -> None:
    watch(stage, "disk", "nic")
    first = stage.details_at
    watch(stage, "disk")
    assert (have(stage), stage.follower.snapshot().vnic_profiles) == ((True, False), ())
    assert stage.details_at == first
    watch(stage, "disk", "nic")
    assert stage.details_at > first
    assert have(stage) == (True, True)


def test_what_happened_while_the_engine_was_silent_is_found(stage: Stage) -> None:
    watch(stage, "disk")
    read_at = stage.details_at
    refuse(stage, "/events")
    turns(stage, 40)
    stage.server.disturbances.clear()
    refuse(stage, "/vms/")  # what events report now is no help
    vm = some_vm(stage)
    Portal(stage.engine).detach_disk(vm.id, vm.disks[0].id)
    turns(stage)
    assert known(stage, vm.id).disks == vm.disks[1:]
    assert stage.details_at > read_at
    assert stage.follower.moments.details_at == stage.details_at


def details_of(stage: Stage) -> dict[str, VmDetails]:
    return {vm.id: VmDetails.of(vm) for vm in stage.follower.snapshot().vms}


def test_a_vm_that_is_read_again_for_another_reason_keeps_its_details(stage: Stage) -> None:
    watch(stage, *EVERY_LEVEL)
    before = details_of(stage)
    for vm in stage.engine.queries.state.vms.values():
        stage.engine.vms.edit(vm.id, **DESCRIBED)
    turns(stage)
    assert details_of(stage) == before
    stage.read(ReconciliationScope.WHOLE)
    turns(stage)
    assert details_of(stage) == before


def test_an_engine_that_fails_on_what_it_is_to_follow_hides_no_vm(stage: Stage) -> None:
    """So it does while a disk is being removed, and it fails on the whole answer."""
    watch(stage, "disk")
    vm = as_state_files_have(next(vm for vm in stage.engine.queries.state.vms.values() if vm.status == "up"))
    refuse(stage, f"/vms/{vm.id}.*follow")
    failures = stage.failures
    Portal(stage.engine).detach_disk(vm.id, vm.disks[0].id)
    stage.engine.vms.stop(vm.id)
    turns(stage, 10)
    assert stage.failures == failures
    assert known(stage, vm.id).host is None
    assert known(stage, vm.id).disks == vm.disks, "as they were known before"
    stage.server.disturbances.clear()
    turns(stage, 20)
    assert known(stage, vm.id).disks == vm.disks[1:]


def test_a_vm_that_was_read_after_a_larger_reading_began_stays_as_it_was_read(stage: Stage) -> None:
    watch(stage, "nic")
    vm = some_vm(stage)
    slow = read(stage.connection, ReconciliationScope.DETAILS, stage.follower.needs, stage.now)
    added = stage.engine.vms.add_nic(vm.id, name="nic0").id
    for hand in (lambda: None, lambda: stage.follower.hand_in(slow)):  # it began before, and ends now
        hand()
        turns(stage)
        assert added in {nic.id for nic in known(stage, vm.id).nics}


def test_a_larger_reading_that_began_with_fewer_wishes_is_not_enough(stage: Stage) -> None:
    """It begins when a new key is known, but not yet to whom it is that reads."""
    watch(stage, "disk")
    before, details = stage.follower.needs, stage.larger[ReconciliationScope.DETAILS]
    stage.follower.demands = Demands(Detail.DISKS | Detail.NICS)
    stage.follower.turn()
    needed = details.since
    stage.now += 1
    stage.read(ReconciliationScope.DETAILS, before)
    stage.follower.turn()
    assert details.since > needed
    assert stage.follower.moments.details_at == float("-inf")
    turns(stage)
    assert have(stage) == (True, True)


def hand_in(stage: Stage, disks: dict[str, VmDetails]) -> None:
    """A larger reading of disks that began and ended now."""
    stage.follower.hand_in(Reading(stage.now, details=Details(Detail.DISKS, disks)))


def test_a_larger_reading_replaces_what_was_read_before_it_began(stage: Stage) -> None:
    watch(stage, "disk")
    vm = some_vm(stage)
    stage.settle()
    moved = (Disk(id="moved", bootable=True, profile="fast"),)
    hand_in(stage, dict.fromkeys(stage.engine.queries.state.vms, VmDetails(disks=moved)))
    turns(stage)  # no event reports a disk that was moved
    assert known(stage, vm.id).disks == moved


def test_a_vm_that_a_larger_reading_lacks_is_read_by_itself(stage: Stage) -> None:
    watch(stage, "disk")
    vm = some_vm(stage)
    wrong = dict.fromkeys(stage.engine.queries.state.vms, VmDetails())
    hand_in(stage, wrong)
    stage.turn()
    assert known(stage, vm.id).disks == ()
    del wrong[vm.id]
    hand_in(stage, wrong)
    turns(stage)
    assert known(stage, vm.id).disks == vm.disks


def test_a_new_vnic_profile_is_read_with_the_first_nic_that_has_it(stage: Stage) -> None:
    watch(stage, "network")
    vm = some_vm(stage)
    # As if no event had reported of a profile.
    stage.follower.hand_in(Reading(stage.now, details=Details(Detail.NICS, details_of(stage))))
    stage.turn()
    assert stage.follower.snapshot().vnic_profiles == ()
    stage.engine.vms.add_nic(vm.id, name="nic0", vnic_profile="bulk")
    turns(stage)
    found = stage.follower.snapshot()
    assert ("network", "back") in set(resources(found, found.vm_by_id[vm.id]))


def test_an_owner_changes_as_permissions_and_tags_come_and_go(stage: Stage) -> None:
    watch(stage, "customer")
    vm, portal = some_vm(stage), Portal(stage.engine)

    def owner() -> str | None:
        turns(stage)
        return known(stage, vm.id).owner

    tag = portal.add_tag("pk-customer-acme")
    portal.attach_tag(tag.id, vm.id)
    assert owner() == "acme"
    portal.rename_tag(tag.id, "pk-customer-other")
    assert owner() == "other"
    portal.remove_tag(tag.id)
    assert owner() == "user0"
    second = portal.grant(USER_VM_MANAGER.id, "staff", vm=vm.id, is_group=True)
    assert owner() is None
    granted = stage.engine.queries.state.permissions.values()
    portal.revoke(next(one.id for one in granted if (one.vm, one.holder) == (vm.id, "user0")))
    assert owner() == "staff"
    portal.revoke(second.id)
    assert owner() is None
