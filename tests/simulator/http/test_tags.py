"""Tags are added below others, changed, removed with those below them, and put on what bears them."""

from __future__ import annotations

import pytest
from ovirtsdk4 import Connection, Error, NotFoundError, types

from ovirt_simulator.core.engine import Engine
from ovirt_simulator.http.server import Server
from tests.simulator.http.plain import request

ROOT = "00000000-0000-0000-0000-000000000000"


def names(found: list[types.Tag]) -> list[str]:
    return [tag.name for tag in found]


def reported(engine: Engine) -> tuple[int, str]:
    event = engine.queries.events()[0]
    return event.code, event.description


def test_a_tag_has_a_description_and_a_parent(sdk: Connection) -> None:
    tags = sdk.system_service().tags_service()
    racks = tags.add(types.Tag(name="racks", description="where it stands"))
    left = tags.add(types.Tag(name="left", parent=types.Tag(name="racks")))
    assert (racks.description, racks.parent.id) == ("where it stands", ROOT)
    assert left.parent.id == racks.id
    root = tags.list()[-1]
    assert (root.id, root.name, root.description, root.parent) == (ROOT, "root", "root", None)
    assert tags.tag_service(ROOT).get().name == "root"
    with pytest.raises(Error, match="already exists") as caught:
        tags.add(types.Tag(name="left"))
    assert caught.value.code == 409
    with pytest.raises(NotFoundError):
        tags.add(types.Tag(name="right", parent=types.Tag(name="nowhere")))


def test_a_changed_tag_stays_on_what_carries_it(sdk: Connection, engine: Engine) -> None:
    system = sdk.system_service()
    tags = system.tags_service()
    red = next(tag for tag in tags.list() if tag.name == "red")
    changed = tags.tag_service(red.id).update(types.Tag(name="crimson", description="dark"))
    assert (changed.name, changed.description, reported(engine)[0]) == ("crimson", "dark", 430)
    of_vm = system.vms_service().vm_service("web2").tags_service().list()
    assert [(tag.id, tag.name) for tag in of_vm] == [(red.id, "crimson")]
    with pytest.raises(Error, match="already exists"):
        tags.tag_service(red.id).update(types.Tag(name="blue"))
    with pytest.raises(Error, match="recursive"):
        tags.tag_service(red.id).update(types.Tag(parent=types.Tag(id=red.id)))
    with pytest.raises(Error, match="readonly"):
        tags.tag_service(ROOT).update(types.Tag(name="trunk"))


def test_a_removed_tag_takes_those_below_it_along(sdk: Connection, engine: Engine) -> None:
    system = sdk.system_service()
    tags = system.tags_service()
    red = next(tag for tag in tags.list() if tag.name == "red")
    tags.add(types.Tag(name="pink", parent=types.Tag(id=red.id)))
    tags.tag_service(red.id).remove()
    assert reported(engine) == (434, "Tag red was removed by admin@internal-authz.")
    assert names(tags.list()) == ["blue", "ssd", "root"]
    assert names(system.vms_service().vm_service("web1").tags_service().list()) == ["blue"]
    with pytest.raises(NotFoundError):
        tags.tag_service(red.id).remove()


def test_hosts_are_tagged(sdk: Connection, engine: Engine) -> None:
    of_host = sdk.system_service().hosts_service().host_service("host2").tags_service()
    added = of_host.add(types.Tag(name="red"))
    assert reported(engine) == (442, "Tag red was attached to Host(s) beta by admin@internal-authz.")
    of_host.add(types.Tag(id=added.id))
    assert reported(engine)[0] == 455
    assert names(of_host.list()) == ["red"]
    assert engine.snapshot().hosts[1].tags == ("red",)
    of_host.tag_service(added.id).remove()
    assert (of_host.list(), reported(engine)[0]) == ([], 444)
    with pytest.raises(NotFoundError):
        of_host.tag_service(added.id).remove()


def test_a_tag_that_a_vm_has_is_reported_differently(sdk: Connection, engine: Engine) -> None:
    of_vm = sdk.system_service().vms_service().vm_service("web1").tags_service()
    of_vm.add(types.Tag(name="red"))
    assert reported(engine) == (454, "Tag red already attached to VM(s) web1.")


def test_only_who_manages_tags_may(server: Server) -> None:
    for method, path in (("POST", "tags"), ("PUT", f"tags/{ROOT}"), ("DELETE", f"tags/{ROOT}")):
        body = "<tag><name>x</name></tag>"
        assert (
            request(f"{server.api_url}/{path}", method, body, user="reader@internal:password").status == 403
        )


@pytest.mark.parametrize("kind", ["user", "group"])
def test_users_and_groups_are_tagged(sdk: Connection, engine: Engine, kind: str) -> None:
    system, domain = sdk.system_service(), types.Domain(name="corp-authz")
    if kind == "user":
        one = system.users_service().add(types.User(user_name="ann", domain=domain))
        service, codes, called = system.users_service().user_service(one.id), [436, 452, 448], "User(s)"
    else:
        one = system.groups_service().add(types.Group(name="ann", domain=domain))
        service, codes, called = system.groups_service().group_service(one.id), [438, 453, 450], "Group(s)"
    tags, seen = service.tags_service(), []
    tag = tags.add(types.Tag(name="blue"))
    assert reported(engine)[1] == f"Tag blue was attached to {called} ann by admin@internal-authz."
    seen.append(reported(engine)[0])
    tags.add(types.Tag(id=tag.id))
    seen.append(reported(engine)[0])
    system.tags_service().tag_service(tag.id).update(types.Tag(name="navy"))
    assert names(tags.list()) == names(service.get(query={"follow": "tags"}).tags) == ["navy"]
    assert tags.tag_service(tag.id).get().name == "navy"
    tags.tag_service(tag.id).remove()
    seen.append(reported(engine)[0])
    assert (tags.list(), seen) == ([], codes)
    with pytest.raises(NotFoundError):
        tags.tag_service(tag.id).remove()


def test_users_are_searched_by_their_tags(sdk: Connection) -> None:
    users = sdk.system_service().users_service()
    domain = types.Domain(name="corp-authz")
    ann, _ = (users.add(types.User(user_name=name, domain=domain)) for name in ("ann", "ben"))
    users.user_service(ann.id).tags_service().add(types.Tag(name="blue"))
    assert [user.principal for user in users.list(search="tag=blue")] == ["ann"]
    users.user_service(ann.id).remove()
    assert users.list(search="tag=blue") == []
