"""Whom VMs belong to: permissions as the engine shows them, tags, and the owner that follows from both."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from msgspec.structs import replace
from ovirtsdk4 import AuthError, Connection, Error, NotFoundError, types

from ovirt_simulator.core.built_in_roles import USER_ROLE, USER_VM_MANAGER
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.http.server import Server
from tests.simulator.http.plain import request
from tests.simulator.http.world import WORLD


def owners(engine: Engine) -> dict[str, str | None]:
    return {vm.id: vm.owner for vm in engine.snapshot().vms}


def granted(sdk: Connection, vm_id: str, role: str, **holder: object) -> types.Permission:
    permissions = sdk.system_service().vms_service().vm_service(vm_id).permissions_service()
    return permissions.add(types.Permission(role=types.Role(name=role), **holder))


def test_the_owner_of_the_state_file_manages_its_vm() -> None:
    vms = tuple(replace(vm, owner="alice") if vm.id == "web1" else vm for vm in WORLD.vms)
    engine = Engine.from_snapshot(replace(WORLD, vms=vms), clock=datetime(2026, 3, 1, tzinfo=UTC))
    (permission,) = engine.queries.permissions()
    assert (permission.role, permission.holder, permission.vm) == (USER_VM_MANAGER.id, "alice", "web1")
    assert owners(engine)["web1"] == "alice"


def test_the_one_manager_owns_a_vm_before_its_users_and_several_do_not(
    sdk: Connection, engine: Engine
) -> None:
    granted(sdk, "web1", "UserRole", user=types.User(id="bob"))
    assert owners(engine)["web1"] == "bob"
    manager = granted(sdk, "web1", "UserVmManager", group=types.Group(id="staff"))
    assert owners(engine)["web1"] == "staff"
    granted(sdk, "web1", "UserVmManager", user=types.User(id="alice"))
    assert owners(engine)["web1"] is None
    vm = sdk.system_service().vms_service().vm_service("web1")
    vm.permissions_service().permission_service(manager.id).remove()
    assert owners(engine)["web1"] == "alice"


def test_who_is_removed_owns_nothing(sdk: Connection, engine: Engine) -> None:
    users = sdk.system_service().users_service()
    user = users.add(types.User(user_name="carol@internal", domain=types.Domain(name="internal-authz")))
    granted(sdk, "web1", "UserVmManager", user=types.User(id=user.id))
    assert owners(engine)["web1"] == user.id
    users.user_service(user.id).remove()
    assert owners(engine)["web1"] is None


def test_a_tag_names_the_owner_whatever_the_permissions(sdk: Connection, engine: Engine) -> None:
    for name in ("alice", "bob"):
        granted(sdk, "web1", "UserVmManager", user=types.User(id=name))
    system = sdk.system_service()
    system.tags_service().add(types.Tag(name="pk-customer-acme"))
    tags = system.vms_service().vm_service("web1").tags_service()
    tag = tags.add(types.Tag(name="pk-customer-acme"))
    assert owners(engine)["web1"] == "acme"
    assert sorted(each.name for each in tags.list()) == ["blue", "pk-customer-acme", "red"]
    tags.tag_service(tag.id).remove()
    assert owners(engine)["web1"] is None
    with pytest.raises(Error, match="already exists"):
        system.tags_service().add(types.Tag(name="pk-customer-acme"))


def test_inherited_permissions_look_like_the_vms_own_but_for_their_ids(
    sdk: Connection, engine: Engine
) -> None:
    system = sdk.system_service()
    on_cluster = (
        system.clusters_service()
        .cluster_service("cluster1")
        .permissions_service()
        .add(types.Permission(role=types.Role(id=USER_VM_MANAGER.id), user=types.User(id="boss")))
    )
    own = granted(sdk, "web1", "UserRole", user=types.User(id="bob"))
    shown = {each.id: each for each in system.vms_service().vm_service("web1").permissions_service().list()}
    assert {each.vm.id for each in shown.values()} == {"web1"}
    assert (shown[on_cluster.id].user.id, shown[own.id].role.id) == ("boss", USER_ROLE.id)
    clusters = {each.id: each for each in system.clusters_service().list(follow="permissions")}
    inherited = {each.id for each in clusters["cluster1"].permissions}
    assert set(shown) - inherited == {own.id}
    assert {each.cluster.id for each in clusters["cluster1"].permissions} == {"cluster1"}
    assert on_cluster.id not in {each.id for each in clusters["cluster2"].permissions}
    assert owners(engine)["web1"] == "bob"
    really = system.vms_service().vm_service("web1").permissions_service().permission_service(on_cluster.id)
    assert really.get().cluster.id == "cluster1"


def test_events_name_the_vm_and_do_not_refer_to_it(sdk: Connection, engine: Engine) -> None:
    permission = granted(sdk, "web2", "UserRole", user=types.User(id="bob"))
    vm = sdk.system_service().vms_service().vm_service("web2")
    vm.permissions_service().permission_service(permission.id).remove()
    tag = vm.tags_service().add(types.Tag(name="blue"))
    vm.tags_service().tag_service(tag.id).remove()
    events = engine.queries.events()[:4]
    assert [event.code for event in events] == [446, 440, 852, 850]
    assert all(event.vm is None for event in events)
    assert [event.description for event in events] == [
        "Tag blue was detached from VM(s) web2 by admin@internal-authz.",
        "Tag blue was attached to VM(s) web2 by admin@internal-authz.",
        "User/Group bob Role UserRole permission was removed from VM web2 by admin@internal-authz",
        (
            "User/Group bob, Namespace *, Authorization provider: internal-authz was granted permission for"
            " Role UserRole on VM web2, by admin@internal-authz."
        ),
    ]


def test_who_has_permissions_and_the_roles_can_be_looked_up(sdk: Connection) -> None:
    granted(sdk, "web1", "UserRole", user=types.User(id="bob"))
    granted(sdk, "web1", "UserRole", group=types.Group(id="staff"))
    system = sdk.system_service()
    assert "bob-authz" in {user.user_name for user in system.users_service().list()}
    assert [group.name for group in system.groups_service().list()] == ["staff"]
    assert {"UserRole", "UserVmManager"} < {role.name for role in system.roles_service().list()}


def test_what_is_not_there_or_not_allowed_is_refused(sdk: Connection, server: Server) -> None:
    with pytest.raises(Error, match="invalid Role id"):
        granted(sdk, "web1", "Nonsense", user=types.User(id="bob"))
    with pytest.raises(Error, match=r"user\|group.id"):
        granted(sdk, "web1", "UserRole")
    with pytest.raises(NotFoundError):
        granted(sdk, "nowhere", "UserRole", user=types.User(id="bob"))
    assert request(f"{server.api_url}/vms/web1/permissions/nonsense", "DELETE").status == 404
    reader = Connection(url=server.api_url, username="reader@internal", password="password")
    with pytest.raises(AuthError):
        granted(reader, "web1", "UserRole", user=types.User(id="bob"))
    reader.close()
