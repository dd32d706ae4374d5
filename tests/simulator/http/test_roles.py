"""Roles and their permits, and users and groups that are taken from a directory."""

from __future__ import annotations

import pytest
from ovirtsdk4 import Connection, Error, NotFoundError, types

from ovirt_simulator.core.engine import Engine
from ovirt_simulator.http.server import Server
from tests.simulator.core.engines import codes
from tests.simulator.http.plain import request

VM_CREATOR = "def0000a-0000-0000-0000-def00000000d"


def test_the_predefined_roles_stay_as_they_are(sdk: Connection) -> None:
    roles = sdk.system_service().roles_service()
    known = {role.name: role for role in roles.list(follow="permits")}
    assert len(known) == 38  # with that of who asks
    assert known["VmCreator"].id == VM_CREATOR
    assert {permit.name for permit in known["VmCreator"].permits} == {
        "create_vm",
        "create_disk",
        "login",
        "assign_cpu_profile",
    }
    assert known["ClusterAdmin"].administrative
    service = roles.role_service(VM_CREATOR)
    for change in (lambda: service.update(types.Role(name="x")), service.remove):
        with pytest.raises(Error, match="The Role is Read-Only") as caught:
            change()
        assert caught.value.code == 409


def test_a_role_is_made_changed_granted_and_removed(sdk: Connection, engine: Engine) -> None:
    system = sdk.system_service()
    roles = system.roles_service()
    role = roles.add(types.Role(name="mine", permits=[types.Permit(id="1"), types.Permit(id="1300")]))
    service = roles.role_service(role.id)
    assert (role.mutable, role.administrative) == (True, False)
    assert [permit.name for permit in service.permits_service().list()] == ["create_vm", "login"]
    service.permits_service().add(types.Permit(name="run_vm"))
    with pytest.raises(Error, match="already attached to Role"):
        service.permits_service().add(types.Permit(id="22"))
    service.permits_service().permit_service("1").remove()
    assert [permit.id for permit in service.permits_service().list()] == ["1300", "22"]
    assert service.update(types.Role(description="new")).description == "new"
    vm = system.vms_service().vm_service("web1").permissions_service()
    granted = vm.add(types.Permission(role=types.Role(name="mine"), user=types.User(id="alice")))
    with pytest.raises(Error, match="remove all Permissions first"):
        service.remove()
    vm.permission_service(granted.id).remove()
    service.remove()
    with pytest.raises(NotFoundError):
        service.get()
    assert codes(engine) == [864, 860, 862, 856, 850, 852, 858]


@pytest.mark.parametrize(
    ("role", "status", "words"),
    [
        (types.Role(name="x"), 400, "permits.id"),
        (types.Role(name="x", permits=[]), 400, "Actions list cannot be empty"),
        (types.Role(name="VmCreator", permits=[types.Permit(id="1")]), 409, "already in use"),
        (types.Role(name="x", permits=[types.Permit(id="100")]), 409, "administrator's action group"),
    ],
)
def test_what_is_no_role_is_refused(sdk: Connection, role: types.Role, status: int, words: str) -> None:
    with pytest.raises(Error, match=words) as caught:
        sdk.system_service().roles_service().add(role)
    assert caught.value.code == status


def test_a_permit_that_there_is_not_is_refused_by_a_line_of_text(server: Server) -> None:
    body = b'<role><name>x</name><permits><permit id="9"/><permit id="4242"/></permits></role>'
    reply = request(f"{server.api_url}/roles", "POST", body)
    assert (reply.status, reply.body) == (400, b"4242 is not a valid permit ID.")


def test_users_and_groups_come_from_a_directory_and_go_with_their_permissions(
    sdk: Connection, engine: Engine
) -> None:
    system = sdk.system_service()
    users, groups = system.users_service(), system.groups_service()
    domain = types.Domain(name="corp-authz")
    user = users.add(types.User(user_name="ann@corp-authz", domain=domain))
    assert (user.user_name, user.principal, user.domain.name) == ("ann@corp-authz", "ann", "corp-authz")
    assert users.add(types.User(user_name="ann", domain=domain)).id == user.id
    group = groups.add(types.Group(name="staff", domain=domain))
    assert groups.list(search="name=staff")[0].id == group.id
    with pytest.raises(Error, match=r"domain\.id\|name"):
        groups.add(types.Group(name="others"))
    networks = system.networks_service().network_service("net1").permissions_service()
    for holder in ({"user": types.User(id=user.id)}, {"group": types.Group(id=group.id)}):
        networks.add(types.Permission(role=types.Role(name="NetworkAdmin"), **holder))
    assert len(networks.list()) == 3  # with that of who asks
    (own,) = users.user_service(user.id).permissions_service().list()  # nothing says what it is on
    assert (own.role.id, own.vm, own.cluster) == ("def00005-0000-0000-0000-def000000005", None, None)
    users.user_service(user.id).remove()
    groups.group_service(group.id).remove()
    assert len(networks.list()) == 1
    assert users.list(search="name=ann") == groups.list() == []
    assert codes(engine) == [149, 149, 850, 850, 325, 408]


def test_permissions_on_a_data_center_show_on_all_in_it(sdk: Connection) -> None:
    system = sdk.system_service()
    center = system.data_centers_service().data_center_service("dc1").permissions_service()
    granted = center.add(types.Permission(role=types.Role(name="ClusterAdmin"), user=types.User(id="ann")))
    for service in (
        system.clusters_service().cluster_service("cluster2"),
        system.hosts_service().host_service("far"),
        system.vms_service().vm_service("remote"),
    ):
        assert granted.id in {one.id for one in service.permissions_service().list()}
    assert (
        system.hosts_service()
        .host_service("far")
        .permissions_service()
        .permission_service(granted.id)
        .get()
        .data_center.id
        == "dc1"
    )
    center.permission_service(granted.id).remove()
    assert len(center.list()) == 1
