"""To whom a VM belongs is read from permissions that the engine shows misleadingly, and from tags."""

import json
from urllib.request import urlopen

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ovirt_placement.engine.topology import detailed_vms, read_snapshot, reread_vms
from ovirt_placement.engine.vms import ALL_DETAILS, USER_ROLE, USER_VM_MANAGER, Detail, Grant, owner
from ovirt_placement.model import Disk, Nic, Snapshot
from ovirt_simulator.http.control import Disturbance
from ovirt_simulator.http.server import Server
from tests import builders as build
from tests.placement.engine.simulated import simulated
from tests.portal import Portal


def held(*holders: str, role: str = USER_VM_MANAGER) -> list[Grant]:
    return [Grant(f"{role}-{holder}", role, holder) for holder in holders]


@pytest.mark.parametrize(
    ("tags", "grants", "expected"),
    [
        ((), [], None),
        ((), held("alice"), "alice"),
        ((), held("bob", role=USER_ROLE), "bob"),
        ((), [*held("bob", "carol", role=USER_ROLE), *held("alice")], "alice"),
        ((), [*held("bob", role=USER_ROLE), *held("alice", "dave")], None),
        ((), held("alice", "alice"), "alice"),
        (("pk-customer-acme", "gold"), held("alice", "dave"), "acme"),
        (("pk-customer-acme", "pk-customer-emca"), held("alice"), None),
        (("customer-acme", "PK-customer-acme"), held("alice"), "alice"),
    ],
)
def test_the_owner_is_named_or_the_one_with_the_stronger_role(
    tags: tuple[str, ...], grants: list[Grant], expected: str | None
) -> None:
    assert owner(tags, grants) == expected


@given(st.lists(st.tuples(st.sampled_from([USER_ROLE, USER_VM_MANAGER, "other"]), st.sampled_from("abc"))))
def test_the_order_of_permissions_changes_nothing(held_by: list[tuple[str, str]]) -> None:
    grants = [Grant("id", role, holder) for role, holder in held_by]
    assert owner((), grants) == owner((), grants[::-1])


def owned(number: int, **fields: object) -> Snapshot:
    vms = (
        build.vm(
            f"vm{at:04}",
            owner=f"user{at % 7}",
            disks=(Disk(id=f"disk{at}", bootable=True, profile="fast"),),
            nics=(Nic(id=f"nic{at}", name="nic1"),),
        )
        for at in range(number)
    )
    return build.snapshot(build.cluster(), build.cluster("other"), *vms)


@pytest.mark.parametrize("number", [0, 1, 499, 500, 501, pytest.param(1203, marks=pytest.mark.system)])
def test_all_details_are_read_whatever_the_number_of_vms(number: int) -> None:
    with simulated(owned(number)) as (engine, _, connection):
        found = detailed_vms(connection, ALL_DETAILS)
        expected = {vm.id: (vm.owner, vm.disks, vm.nics) for vm in engine.snapshot().vms}
        assert {vm.id: (vm.owner, vm.disks, vm.nics) for vm in found} == expected
        assert len(found) == number


@pytest.mark.parametrize(
    ("details", "requests"), [(Detail.DISKS, 2), (Detail.DISKS | Detail.NICS, 2), (Detail.OWNER, 4)]
)
def test_a_reading_of_all_costs_a_request_a_page_and_two_for_what_is_inherited(
    details: Detail, requests: int
) -> None:
    with simulated(owned(600)) as (_, server, connection):
        connection.get("/vms", max=1)
        before = asked(server)
        assert len(detailed_vms(connection, details)) == 600
        assert asked(server) - before == requests


def asked(server: Server) -> int:
    """How many requests were made of the engine."""
    with urlopen(f"{server.url}/simulator/requests", timeout=30) as answer:
        made: int = json.load(answer)["admin@internal"]
    return made


def test_inherited_permissions_make_no_owners_in_any_kind_of_reading() -> None:
    with simulated(owned(30)) as (engine, _, connection):
        Portal(engine).grant(USER_VM_MANAGER, "boss", cluster=build.CLUSTER)
        Portal(engine).grant(USER_ROLE, "everyone", cluster=build.CLUSTER, is_group=True)
        expected = {vm.id: vm.owner for vm in engine.snapshot().vms}
        assert expected == {vm.id: vm.owner for vm in owned(30).vms}
        assert {vm.owner for vm in read_snapshot(connection).vms} == {None}
        assert {vm.id: vm.owner for vm in read_snapshot(connection, devices=True).vms} == expected
        assert {vm.id: vm.owner for vm in detailed_vms(connection, Detail.OWNER)} == expected
        for number in (1, 5, 30):  # one by one, and by a search
            ids = list(expected)[:number]
            reread = reread_vms(connection, ids, Detail.OWNER)
            assert {vm.id: vm.owner for vm in reread.values()} == {one: expected[one] for one in ids}


def test_what_is_inherited_is_not_asked_for_where_nobody_uses_a_vm() -> None:
    state = owned(3)
    with simulated(replace(state, vms=tuple(replace(vm, owner=None) for vm in state.vms))) as (
        _,
        server,
        connection,
    ):
        server.disturbances.add(Disturbance(path="/clusters", status=500, times=None))
        assert len(reread_vms(connection, ["vm0000", "vm0001"], ALL_DETAILS)) == 2


@pytest.mark.parametrize("number", [1, 5, 12, 50])
def test_what_is_read_again_has_the_details_that_are_asked_for(number: int) -> None:
    with simulated(owned(60)) as (_, _, connection):
        whole = {vm.id: vm for vm in read_snapshot(connection, devices=True).vms[:number]}
        assert reread_vms(connection, list(whole), ALL_DETAILS) == whole
        nics = reread_vms(connection, list(whole), Detail.NICS).values()
        assert all(vm.nics and not vm.disks and vm.owner is None for vm in nics)
