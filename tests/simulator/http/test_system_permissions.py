"""Permissions on the whole system, and those that are granted at the address of a user or group."""

from __future__ import annotations

import pytest
from ovirtsdk4 import AuthError, Connection, Error, NotFoundError, types

from ovirt_simulator.core.engine import Engine
from ovirt_simulator.http.server import Server
from tests.simulator.core.engines import codes
from tests.simulator.http.plain import request

SUPER_USER = "00000000-0000-0000-0000-000000000001"


def _taken(sdk: Connection, name: str = "ann") -> str:
    users = sdk.system_service().users_service()
    identity: str = users.add(types.User(user_name=name, domain=types.Domain(name="corp-authz"))).id
    return identity


def _on_system(sdk: Connection, role: str, **holder: object) -> types.Permission:
    permissions = sdk.system_service().permissions_service()
    return permissions.add(types.Permission(role=types.Role(name=role), **holder))


def test_a_permission_on_the_whole_system_shows_on_all_in_it(sdk: Connection, engine: Engine) -> None:
    system = sdk.system_service()
    user = _taken(sdk)
    granted = _on_system(sdk, "SuperUser", user=types.User(id=user))
    assert (granted.role.id, granted.user.id, granted.vm, granted.cluster) == (SUPER_USER, user, None, None)
    again = _on_system(sdk, "SuperUser", user=types.User(id=user))
    assert again.id == granted.id
    on_all = system.permissions_service()
    assert granted.id in {one.id for one in on_all.list()}
    for service, kind, identity in (
        (system.vms_service().vm_service("web1"), "vm", "web1"),
        (system.clusters_service().cluster_service("cluster1"), "cluster", "cluster1"),
        (system.hosts_service().host_service("host1"), "host", "host1"),
        (system.data_centers_service().data_center_service("dc1"), "data_center", "dc1"),
    ):
        inherited = service.permissions_service()
        shown = {one.id: one for one in inherited.list()}[granted.id]
        assert getattr(shown, kind).id == identity
        assert getattr(inherited.permission_service(granted.id).get(), kind) is None  # what it is really on
    assert engine.snapshot().vms[0].owner is None
    on_all.permission_service(granted.id).remove()
    with pytest.raises(NotFoundError):
        on_all.permission_service(granted.id).get()
    assert codes(engine) == [149, 850, 852]
    assert [event.description for event in engine.queries.events()[:2]] == [
        "User/Group ann Role SuperUser permission was removed from System System by admin@internal-authz",
        (
            "User/Group ann, Namespace *, Authorization provider: internal-authz was granted permission for"
            " Role SuperUser on System System, by admin@internal-authz."
        ),
    ]


@pytest.mark.parametrize(
    ("kind", "on"),
    [
        ("vm", types.Permission(vm=types.Vm(id="web1"))),
        ("host", types.Permission(host=types.Host(id="host1"))),
        ("data_center", types.Permission(data_center=types.DataCenter(id="dc1"))),
        ("cluster", types.Permission(cluster=types.Cluster(id="cluster1"), vm=types.Vm(id="web1"))),
    ],
)
def test_a_user_is_granted_a_role_on_what_the_body_names(
    sdk: Connection, kind: str, on: types.Permission
) -> None:
    user = _taken(sdk)
    permissions = sdk.system_service().users_service().user_service(user).permissions_service()
    on.role = types.Role(name="UserVmManager")
    granted = permissions.add(on)
    assert (granted.user.id, getattr(granted, kind).id) == (user, getattr(on, kind).id)
    assert kind == "vm" or granted.vm is None, "of several the engine takes the first"
    service = permissions.permission_service(granted.id)
    assert service.get().id == granted.id
    assert [one.id for one in permissions.list()] == [granted.id]
    service.remove()
    assert permissions.list() == []


def test_who_is_granted_the_vm_owns_it(sdk: Connection, engine: Engine) -> None:
    groups = sdk.system_service().groups_service()
    group = groups.add(types.Group(name="staff", domain=types.Domain(name="corp-authz")))
    permissions = groups.group_service(group.id).permissions_service()
    granted = permissions.add(types.Permission(role=types.Role(name="UserVmManager"), vm=types.Vm(id="web1")))
    assert (granted.group.id, granted.user) == (group.id, None)
    assert {vm.id: vm.owner for vm in engine.snapshot().vms}["web1"] == group.id
    assert permissions.permission_service(granted.id).get().vm.id == "web1"


def test_roles_of_a_user_are_those_on_the_whole_system(sdk: Connection) -> None:
    system = sdk.system_service()
    user = system.users_service().user_service(_taken(sdk))
    on_vm = types.Permission(role=types.Role(name="UserRole"), vm=types.Vm(id="web1"))
    user.permissions_service().add(on_vm)
    role = system.roles_service().add(types.Role(name="mine", permits=[types.Permit(id="1")]))
    granted = _on_system(sdk, "mine", user=user.get())
    held = user.roles_service().role_service(role.id)
    assert [one.name for one in user.roles_service().list()] == [held.get().name] == ["mine"]
    (followed,) = user.get(query={"follow": "roles.permits"}).roles
    assert [permit.name for permit in followed.permits] == ["create_vm"]
    with pytest.raises(Error, match="remove all Permissions first"):
        held.remove()
    system.permissions_service().permission_service(granted.id).remove()
    held.remove()
    with pytest.raises(NotFoundError):
        system.roles_service().role_service(role.id).get()


def test_what_is_refused(sdk: Connection, server: Server) -> None:
    system = sdk.system_service()
    users = [system.users_service().user_service(_taken(sdk, name)) for name in ("ann", "ben")]
    web1 = types.Vm(id="web1")
    for body, words in (
        (types.Permission(role=types.Role(name="UserRole")), r"dataCenter\|cluster\|host"),
        (types.Permission(vm=web1), r"role.id\|name"),
        (types.Permission(role=types.Role(name="none"), vm=web1), "invalid Role id"),
        (types.Permission(role=types.Role(name="UserRole"), vm=types.Vm(id="none")), "invalid object ID"),
    ):
        with pytest.raises(Error, match=words) as caught:
            users[0].permissions_service().add(body)
        assert caught.value.code == 400
    held = users[0].permissions_service().add(types.Permission(role=types.Role(name="UserRole"), vm=web1))
    with pytest.raises(Error, match="Cannot remove inherited permission") as caught:
        users[1].permissions_service().permission_service(held.id).remove()
    assert caught.value.code == 409
    (own,) = system.permissions_service().list()
    assert request(f"{server.api_url}/permissions/{own.id}", "DELETE").status == 501
    body = "<permission><role><name>UserRole</name></role><template id='t'/></permission>"
    address = f"{server.api_url}/users/{users[0].get().id}/permissions"
    assert request(address, "POST", body).status == 501
    assert request(f"{server.api_url}/users/nobody/permissions", "POST", body).status == 404
    reader = Connection(url=server.api_url, username="reader@internal", password="password")
    with pytest.raises(AuthError):
        _on_system(reader, "UserRole", user=users[0].get())
    reader.close()


def test_what_users_have_besides_is_there_and_empty(sdk: Connection, server: Server) -> None:
    user = sdk.system_service().users_service().user_service(_taken(sdk))
    assert user.groups_service().list() == user.ssh_public_keys_service().list() == []
    assert user.event_subscriptions_service().list() == user.options_service().list() == []
    assert user.get(query={"follow": "groups,ssh_public_keys"}).groups == []
    assert request(f"{server.api_url}/users/nobody/groups").status == 404


def test_a_vm_of_a_pool_has_no_permissions_of_its_own(sdk: Connection) -> None:
    system = sdk.system_service()
    template = system.templates_service().add(types.Template(name="t", vm=types.Vm(id="spare")))
    system.vm_pools_service().add(
        types.VmPool(
            name="pool",
            cluster=types.Cluster(id="cluster1"),
            template=types.Template(id=template.id),
            size=1,
        )
    )
    vm = system.vms_service().list(search="name=pool-1")[0]
    with pytest.raises(Error, match="VM is part of VM-Pool") as caught:
        system.vms_service().vm_service(vm.id).permissions_service().add(
            types.Permission(role=types.Role(name="UserRole"), user=types.User(id="ann"))
        )
    assert caught.value.code == 409
