"""Disks, NICs and owners as larger readings and readings of single VMs bring them, in whatever order."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ovirt_placement.engine.vms import ALL_DETAILS, Detail
from ovirt_placement.inventory.on_demand import Demands, Details, Needs, VmDetails
from ovirt_placement.inventory.service.readings import read
from ovirt_placement.inventory.service.schedule import ReconciliationScope
from ovirt_placement.inventory.service.view import Reading
from ovirt_placement.model import Disk
from ovirt_placement.rules.placement_keys.hierarchy import resources
from ovirt_simulator.core.entities import USER_ROLE, USER_VM_MANAGER
from tests.placement.inventory.service.furnished import (
    DESCRIBED,
    EVERY_LEVEL,
    NETWORKS,
    PROFILES,
    as_state_files_have,
    furnished_state,
    known,
    refuse,
    some_vm,
    turns,
    watch,
)
from tests.placement.inventory.stage import Stage, staged
from tests.portal import Portal


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with staged(tmp_path, furnished_state()) as made:
        yield made


def test_a_vm_that_is_read_again_for_another_reason_keeps_its_details(stage: Stage) -> None:
    watch(stage, *EVERY_LEVEL)
    before = {vm.id: (vm.disks, vm.nics, vm.owner) for vm in stage.follower.snapshot().vms}
    for vm in stage.engine.queries.state.vms.values():
        stage.engine.vms.edit(vm.id, **DESCRIBED)
    turns(stage)
    assert {vm.id: (vm.disks, vm.nics, vm.owner) for vm in stage.follower.snapshot().vms} == before
    stage.read(ReconciliationScope.WHOLE)
    turns(stage)
    assert {vm.id: (vm.disks, vm.nics, vm.owner) for vm in stage.follower.snapshot().vms} == before


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
    turns(stage)
    assert added in {nic.id for nic in known(stage, vm.id).nics}
    stage.follower.hand_in(slow)  # it began before, and ends now
    turns(stage)
    assert added in {nic.id for nic in known(stage, vm.id).nics}


def test_a_larger_reading_that_began_with_fewer_wishes_is_not_enough(stage: Stage) -> None:
    """It begins when a new key is known, but not yet to whom it is that reads."""
    watch(stage, "disk")
    before = stage.follower.needs
    stage.follower.demands = Demands(Detail.DISKS | Detail.NICS)
    stage.follower.turn()
    needed = stage.follower.required[ReconciliationScope.DETAILS].since
    stage.now += 1
    stage.read(ReconciliationScope.DETAILS, before)
    stage.follower.turn()
    assert stage.follower.required[ReconciliationScope.DETAILS].since > needed
    assert stage.follower.moments.details_at == float("-inf")
    turns(stage)
    assert all(vm.nics and vm.disks for vm in stage.follower.snapshot().vms)


def test_a_larger_reading_replaces_what_was_read_before_it_began(stage: Stage) -> None:
    watch(stage, "disk")
    vm = some_vm(stage)
    stage.settle()
    moved = (Disk(id="moved", bootable=True, profile="fast"),)
    details = Details(
        Detail.DISKS, {vm.id: VmDetails(disks=moved) for vm in stage.engine.queries.state.vms.values()}
    )
    stage.follower.hand_in(Reading(stage.now, details=details))  # no event reports a disk that was moved
    turns(stage)
    assert known(stage, vm.id).disks == moved


def test_a_vm_that_a_larger_reading_lacks_is_read_by_itself(stage: Stage) -> None:
    watch(stage, "disk")
    vm = some_vm(stage)
    wrong = {vm.id: VmDetails() for vm in stage.engine.queries.state.vms.values()}
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
    vms = {vm.id: VmDetails.of_vm(vm) for vm in stage.follower.snapshot().vms}
    stage.follower.hand_in(
        Reading(stage.now, details=Details(Detail.NICS, vms))
    )  # as if no event had reported of a profile
    stage.turn()
    assert stage.follower.snapshot().vnic_profiles == ()
    stage.engine.vms.add_nic(vm.id, name="nic0", vnic_profile="bulk")
    turns(stage)
    found = stage.follower.snapshot()
    assert ("network", "back") in set(resources(found, found.vm_by_id[vm.id]))


def test_an_owner_is_who_alone_has_the_stronger_role_or_whom_a_tag_names(stage: Stage) -> None:
    watch(stage, "customer")
    vm, portal = some_vm(stage), Portal(stage.engine)

    def owner() -> str | None:
        turns(stage)
        return known(stage, vm.id).owner

    assert owner() == "user0"
    portal.grant(USER_ROLE.id, "guest", vm=vm.id)
    assert owner() == "user0"
    second = portal.grant(USER_VM_MANAGER.id, "staff", vm=vm.id, is_group=True)
    assert owner() is None
    tag = portal.add_tag("pk-customer-acme")
    portal.attach_tag(tag.id, vm.id)
    assert owner() == "acme"
    portal.detach_tag(tag.id, vm.id)
    assert owner() is None
    first = next(
        one
        for one in stage.engine.queries.state.permissions.values()
        if one.vm == vm.id and one.holder == "user0"
    )
    portal.revoke(first.id)
    assert owner() == "staff"
    portal.revoke(second.id)
    assert owner() == "guest"


def test_an_owner_changes_with_the_name_of_a_tag_and_goes_with_the_tag(stage: Stage) -> None:
    watch(stage, "customer")
    vm, portal = some_vm(stage), Portal(stage.engine)
    tag = portal.add_tag("pk-customer-acme")
    portal.attach_tag(tag.id, vm.id)
    turns(stage)
    portal.rename_tag(tag.id, "pk-customer-other")
    turns(stage)
    assert known(stage, vm.id).owner == "other"
    portal.remove_tag(tag.id)
    turns(stage)
    assert known(stage, vm.id).owner == "user0"


def test_who_manages_a_whole_cluster_owns_none_of_its_vms(stage: Stage) -> None:
    for cluster in stage.engine.queries.state.clusters.values():
        Portal(stage.engine).grant(USER_VM_MANAGER.id, "boss", cluster=cluster.id)
    watch(stage, "customer_offer")
    owners = {vm.id: vm.owner for vm in stage.engine.snapshot().vms}
    assert {vm.id: vm.owner for vm in stage.follower.snapshot().vms} == owners
    assert "boss" not in owners.values()
    for vm in stage.engine.queries.state.vms.values():
        stage.engine.vms.edit(vm.id, **DESCRIBED)
    turns(stage)
    assert {vm.id: vm.owner for vm in stage.follower.snapshot().vms} == owners


def test_all_details_of_an_engine_can_be_read_at_once(stage: Stage) -> None:
    reading = read(stage.connection, ReconciliationScope.DETAILS, Needs(details=ALL_DETAILS), 0.0)
    assert reading.details is not None
    shown = stage.shown(devices=True)
    assert reading.details.vms == {vm.id: VmDetails.of_vm(vm) for vm in shown.vms}
    assert reading.details.networks == (NETWORKS, PROFILES)
