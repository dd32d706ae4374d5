"""Disks, NICs and owners in the follower's view: read where keys refer to them, kept up to date by events."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from ovirt_placement.engine.reading.detail import ALL_DETAILS, Detail
from ovirt_placement.inventory.on_demand.details import Details, VmDetails
from ovirt_placement.inventory.on_demand.needs import Needs
from ovirt_placement.inventory.service.follower import read
from ovirt_placement.inventory.service.reconciliation import Scope
from ovirt_placement.inventory.service.view import Reading
from ovirt_placement.model import Disk, Network, Nic, Snapshot, Vm, VnicProfile
from ovirt_placement.model.key_levels import LEVELS, STICKY
from ovirt_placement.rules.placement_keys.hierarchy import resources
from ovirt_simulator.core.built_in_roles import USER_ROLE, USER_VM_MANAGER
from ovirt_simulator.core.vm_commands import VmEdit
from ovirt_simulator.generate import Sizes, generate
from ovirt_simulator.http.disturbances import Disturbance
from tests import builders as build
from tests.placement.inventory.stage import Stage, staged, stir

EVERY_LEVEL = frozenset(LEVELS) - {STICKY}
DETAILED_LEVELS = {
    f"{what}{offer}" for what in ("customer", "disk", "network", "nic") for offer in ("", "_offer")
}
#: In the order of their names, as the engine lists them.
NETWORKS = (Network(id="back", name="back"), Network(id="front", name="front"))
PROFILES = (
    VnicProfile(id="bulk", name="bulk", network="back"),
    VnicProfile(id="gold", name="gold", network="front"),
)
DESCRIBED = VmEdit(description="x")


def furnished(vm: Vm, number: int) -> Vm:
    return replace(
        vm,
        owner=f"user{number % 3}",
        disks=(
            Disk(id=f"{vm.id}-data", bootable=False, profile="slow"),
            Disk(id=f"{vm.id}-root", bootable=True, profile="fast"),
        ),
        nics=(
            Nic(id=f"{vm.id}-nic2", name="nic2", vnic_profile="bulk"),
            Nic(id=f"{vm.id}-nic1", name="nic1", vnic_profile=("gold", None)[number % 2]),
        ),
    )


def furnished_state() -> Snapshot:
    state = generate(Sizes(clusters=2, hosts=6, vms=30, groups=4), 3)
    vms = tuple(furnished(vm, number) for number, vm in enumerate(state.vms))
    return replace(state, vms=vms, networks=NETWORKS, vnic_profiles=PROFILES)


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with staged(tmp_path, furnished_state()) as made:
        yield made


def watch(stage: Stage, *levels: str) -> None:
    """Set keys on these levels, and let what they refer to be read."""
    stage.follower.key_levels = frozenset(levels)
    for _ in range(2):
        stage.turn()


def known(stage: Stage, vm_id: str) -> Vm:
    return stage.follower.snapshot().vm_by_id[vm_id]


def some_vm(stage: Stage) -> Vm:
    return stage.engine.queries.vms()[0]


def turns(stage: Stage, number: int = 4) -> None:
    for _ in range(number):
        stage.turn()


def refuse(stage: Stage, path: str) -> None:
    """Let every request that fits fail from now on; the tests count the failures."""
    stage.server.disturbances.add(Disturbance(path=path, status=500, times=None))


@pytest.mark.parametrize("level", sorted(EVERY_LEVEL))
def test_a_key_on_any_level_finds_what_it_refers_to(stage: Stage, level: str) -> None:
    """The state that the engine was started with tells what stands on each level."""
    watch(stage, level)
    told, found = stage.engine.snapshot(), stage.follower.snapshot()
    expected = {
        (vm.id, place, resource)
        for vm in told.vms
        for place, resource in resources(told, vm)
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
    stage.engine.devices.add_nic(vm.id, "nic3", vnic_profile="gold")
    stage.engine.access.grant(USER_ROLE.id, "x", vm=vm.id)
    stage.engine.devices.add_vnic_profile("new", "front")
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
    stage.engine.vms.edit(some_vm(stage).id, DESCRIBED)
    turns(stage, 20)
    assert stage.failures == 0


@pytest.mark.parametrize("seed", range(3))
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
    devices, access, vm = stage.engine.devices, stage.engine.access, stage.engine.queries.vm
    profile = dice.choice(stage.engine.queries.vnic_profiles()).id
    tags = stage.engine.queries.tags() or (access.add_tag("pk-customer-acme"), access.add_tag("other"))
    tag = dice.choice(tags).id
    name = f"n{dice.randrange(100)}"
    granted = [one for one in stage.engine.queries.permissions() if one.vm is not None]
    return (
        lambda vm_id: devices.add_nic(vm_id, name, vnic_profile=profile),
        lambda vm_id: devices.edit_nic(vm_id, vm(vm_id).nics[0].id, vnic_profile=profile),
        lambda vm_id: devices.remove_nic(vm_id, vm(vm_id).nics[0].id) if len(vm(vm_id).nics) > 1 else None,
        lambda vm_id: devices.attach_disk(vm_id, Disk(id=f"{vm_id}-{name}", bootable=False, profile="fast")),
        lambda vm_id: devices.detach_disk(vm_id, vm(vm_id).disks[0].id) if len(vm(vm_id).disks) > 1 else None,
        lambda _: devices.add_vnic_profile(name, dice.choice(NETWORKS).id),
        lambda vm_id: access.grant(USER_VM_MANAGER.id, name, vm=vm_id, is_group=dice.random() < 0.5),
        lambda vm_id: access.grant(USER_ROLE.id, name, vm=vm_id),
        lambda _: access.revoke(dice.choice(granted).id),
        lambda vm_id: access.attach_tag(tag, vm_id),
        lambda vm_id: access.detach_tag(tag, vm_id),
        lambda vm_id: access.grant(USER_VM_MANAGER.id, name, cluster=vm(vm_id).cluster),
        lambda _: stage.engine.vms.add(
            furnished(build.vm(f"new-{name}", cluster=some_vm(stage).cluster), dice.randrange(9))
        ),
    )


def test_keys_on_a_new_level_count_when_the_reading_is_in_and_the_view_is_believed_meanwhile(
    stage: Stage,
) -> None:
    refuse(stage, "page")
    stage.follower.key_levels = frozenset({"disk"})
    turns(stage)
    assert stage.follower.believable
    assert stage.failures > 0
    assert not any(vm.disks for vm in stage.follower.snapshot().vms)
    assert stage.follower.moments.details_at == float("-inf")
    stage.server.disturbances.clear()
    turns(stage, 2)
    assert all(vm.disks for vm in stage.follower.snapshot().vms)
    assert not any(vm.nics for vm in stage.follower.snapshot().vms)
    assert stage.follower.moments.details_at == stage.details_at
    refuse(stage, "page")
    watch(stage, "disk", "nic")
    assert stage.follower.moments.details_at == float("-inf")
    watch(stage)
    assert stage.follower.moments.details_at == float("-inf")


def test_what_no_key_refers_to_any_more_is_forgotten_and_read_anew_when_one_does(stage: Stage) -> None:
    watch(stage, "disk", "nic")
    first = stage.details_at
    watch(stage, "disk")
    assert not any(vm.nics for vm in stage.follower.snapshot().vms)
    assert stage.follower.snapshot().vnic_profiles == ()
    assert stage.details_at == first
    watch(stage, "disk", "nic")
    assert stage.details_at > first
    assert all(vm.nics for vm in stage.follower.snapshot().vms)


def test_at_rest_a_turn_costs_one_request_whatever_keys_refer_to(stage: Stage) -> None:
    watch(stage, *EVERY_LEVEL)
    stage.settle()
    before = stage.follower.snapshot()
    refuse(stage, "/(vms|hosts|clusters|affinitylabels|datacenters|networks|vnicprofiles)")
    turns(stage, 10)
    assert stage.failures == 0
    assert stage.follower.snapshot() is before


def test_what_happened_while_the_engine_was_silent_is_found(stage: Stage) -> None:
    watch(stage, "disk")
    read_at = stage.details_at
    refuse(stage, "/events")
    turns(stage, 40)
    stage.server.disturbances.clear()
    refuse(stage, "/vms/")  # what events tell now is no help
    vm = some_vm(stage)
    stage.engine.devices.detach_disk(vm.id, vm.disks[0].id)
    turns(stage)
    assert known(stage, vm.id).disks == vm.disks[1:]
    assert stage.details_at > read_at
    assert stage.follower.moments.details_at == stage.details_at


def test_a_vm_that_is_read_again_for_another_reason_keeps_its_details(stage: Stage) -> None:
    watch(stage, *EVERY_LEVEL)
    before = {vm.id: (vm.disks, vm.nics, vm.owner) for vm in stage.follower.snapshot().vms}
    for vm in stage.engine.queries.vms():
        stage.engine.vms.edit(vm.id, DESCRIBED)
    turns(stage)
    assert {vm.id: (vm.disks, vm.nics, vm.owner) for vm in stage.follower.snapshot().vms} == before
    stage.read(Scope.WHOLE)
    turns(stage)
    assert {vm.id: (vm.disks, vm.nics, vm.owner) for vm in stage.follower.snapshot().vms} == before


def test_an_engine_that_fails_on_what_it_is_to_follow_hides_no_vm(stage: Stage) -> None:
    """So it does while a disk is being removed, and it fails on the whole answer."""
    watch(stage, "disk")
    vm = next(vm for vm in stage.engine.queries.vms() if vm.status == "up")
    refuse(stage, f"/vms/{vm.id}.*follow")
    failures = stage.failures
    stage.engine.devices.detach_disk(vm.id, vm.disks[0].id)
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
    slow = read(stage.connection, Scope.DETAILS, stage.policies, stage.follower.needs, stage.now)
    added = stage.engine.devices.add_nic(vm.id, "nic0")
    turns(stage)
    assert added in known(stage, vm.id).nics
    stage.follower.hand_in(slow)  # it began before, and ends now
    turns(stage)
    assert added in known(stage, vm.id).nics


def test_a_larger_reading_that_began_with_fewer_wishes_is_not_enough(stage: Stage) -> None:
    """It begins when a new key is known, but not yet to whom it is that reads."""
    watch(stage, "disk")
    before = stage.follower.needs
    stage.follower.key_levels = frozenset({"disk", "nic"})
    stage.follower.turn()
    needed = stage.follower.details_needed
    stage.now += 1
    stage.read(Scope.DETAILS, before)
    stage.follower.turn()
    assert stage.follower.details_needed > needed
    assert stage.follower.moments.details_at == float("-inf")
    turns(stage)
    assert all(vm.nics and vm.disks for vm in stage.follower.snapshot().vms)


def test_a_larger_reading_replaces_what_was_read_before_it_began(stage: Stage) -> None:
    watch(stage, "disk")
    vm = some_vm(stage)
    stage.settle()
    moved = (Disk(id="moved", bootable=True, profile="fast"),)
    details = Details(Detail.DISKS, {vm.id: VmDetails(disks=moved) for vm in stage.engine.queries.vms()})
    stage.follower.hand_in(Reading(stage.now, details=details))  # no event tells of a disk that was moved
    turns(stage)
    assert known(stage, vm.id).disks == moved


def test_a_vm_that_a_larger_reading_lacks_is_read_by_itself(stage: Stage) -> None:
    watch(stage, "disk")
    vm = some_vm(stage)
    wrong = {vm.id: VmDetails() for vm in stage.engine.queries.vms()}
    stage.follower.hand_in(Reading(stage.now, details=Details(Detail.DISKS, wrong)))
    stage.turn()
    assert known(stage, vm.id).disks == ()
    del wrong[vm.id]
    stage.follower.hand_in(Reading(stage.now, details=Details(Detail.DISKS, wrong)))
    turns(stage)
    assert known(stage, vm.id).disks == vm.disks


def test_a_new_vnic_profile_is_read_with_the_first_nic_that_has_it(stage: Stage) -> None:
    watch(stage, "network")
    vm = some_vm(stage)
    vms = {vm.id: VmDetails.of(vm) for vm in stage.follower.snapshot().vms}
    stage.follower.hand_in(
        Reading(stage.now, details=Details(Detail.NICS, vms))
    )  # as if no event had told of a profile
    stage.turn()
    assert stage.follower.snapshot().vnic_profiles == ()
    stage.engine.devices.add_nic(vm.id, "nic0", vnic_profile="bulk")
    turns(stage)
    found = stage.follower.snapshot()
    assert ("network", "back") in set(resources(found, found.vm_by_id[vm.id]))


def test_an_owner_is_who_alone_has_the_stronger_role_or_whom_a_tag_names(stage: Stage) -> None:
    watch(stage, "customer")
    vm, access = some_vm(stage), stage.engine.access

    def owner() -> str | None:
        turns(stage)
        return known(stage, vm.id).owner

    assert owner() == "user0"
    access.grant(USER_ROLE.id, "guest", vm=vm.id)
    assert owner() == "user0"
    second = access.grant(USER_VM_MANAGER.id, "staff", vm=vm.id, is_group=True)
    assert owner() is None
    tag = access.add_tag("pk-customer-acme")
    access.attach_tag(tag.id, vm.id)
    assert owner() == "acme"
    access.detach_tag(tag.id, vm.id)
    assert owner() is None
    first = next(
        one for one in stage.engine.queries.permissions() if one.vm == vm.id and one.holder == "user0"
    )
    access.revoke(first.id)
    assert owner() == "staff"
    access.revoke(second.id)
    assert owner() == "guest"


def test_who_manages_a_whole_cluster_owns_none_of_its_vms(stage: Stage) -> None:
    for cluster in stage.engine.queries.clusters():
        stage.engine.access.grant(USER_VM_MANAGER.id, "boss", cluster=cluster.id)
    watch(stage, "customer_offer")
    owners = {vm.id: vm.owner for vm in stage.engine.snapshot().vms}
    assert {vm.id: vm.owner for vm in stage.follower.snapshot().vms} == owners
    assert "boss" not in owners.values()
    for vm in stage.engine.queries.vms():
        stage.engine.vms.edit(vm.id, DESCRIBED)
    turns(stage)
    assert {vm.id: vm.owner for vm in stage.follower.snapshot().vms} == owners


def test_all_details_of_an_engine_can_be_read_at_once(stage: Stage) -> None:
    reading = read(stage.connection, Scope.DETAILS, stage.policies, Needs(details=ALL_DETAILS), 0.0)
    assert reading.details is not None
    shown = stage.shown(devices=True)
    assert reading.details.vms == {vm.id: VmDetails.of(vm) for vm in shown.vms}
    assert (reading.details.networks, reading.details.vnic_profiles) == (NETWORKS, PROFILES)
