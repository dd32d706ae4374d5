"""Disks, NICs and owners in the follower's view: read where keys refer to them, kept up to date by events."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from ovirt_placement.engine.vms import Detail
from ovirt_placement.inventory.on_demand import Demands
from ovirt_placement.model import Disk
from ovirt_placement.rules.placement_keys.hierarchy import resources
from ovirt_simulator.core.entities import USER_ROLE, USER_VM_MANAGER
from tests import builders as build
from tests.examples import seeds
from tests.placement.inventory.service.furnished import (
    DESCRIBED,
    EVERY_LEVEL,
    NETWORKS,
    furnished,
    furnished_state,
    known,
    refuse,
    some_vm,
    turns,
    watch,
)
from tests.placement.inventory.stage import Stage, staged, stir
from tests.portal import Portal

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


def test_what_no_key_refers_to_any_more_is_forgotten_and_read_again_when_one_does(stage: Stage) -> None:
    watch(stage, "disk", "nic")
    first = stage.details_at
    watch(stage, "disk")
    assert not any(vm.nics for vm in stage.follower.snapshot().vms)
    assert stage.follower.snapshot().vnic_profiles == ()
    assert stage.details_at == first
    watch(stage, "disk", "nic")
    assert stage.details_at > first
    assert all(vm.nics for vm in stage.follower.snapshot().vms)


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
