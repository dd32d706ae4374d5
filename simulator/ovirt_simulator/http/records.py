"""What is at the addresses of the API: the engine's records, as far as who asks may see them."""

from typing import Any

import msgspec
from msgspec.structs import replace

from ovirt_simulator.core.entities import Permission, Role, Tag, stable_id, user_id
from ovirt_simulator.http import markup
from ovirt_simulator.http.call import Call
from ovirt_simulator.http.documents import statistic_id
from ovirt_simulator.http.markup import absent, fault
from ovirt_simulator.http.resource import Ids, Records


def table(name: str) -> Records:
    return lambda call, _: getattr(call.state, name)


def seen(name: str) -> Records:
    """A table of which one whose queries are filtered sees nothing."""
    return lambda call, _: {} if call.filtered else getattr(call.state, name)


hosts, vms, clusters = seen("hosts"), seen("vms"), seen("clusters")


def _existing(records: Any, key: str) -> Any:
    if key not in records:
        raise absent()
    return records[key]


def _above(call: Call, of: Ids) -> Any:
    """The VM or host that an address goes on below."""
    if "vm_id" in of:
        return _existing(vms(call, of), of["vm_id"])
    return _existing(hosts(call, of), of["host_id"])


def of_vm(name: str) -> Records:
    return lambda call, of: {one.id: one for one in getattr(_above(call, of), name)}


def none_of_vm(call: Call, of: Ids) -> dict[str, Any]:
    _above(call, of)
    return {}


def disks(call: Call, _: Ids) -> dict[str, Any]:
    """What VMs have of disks."""
    return {disk.id: disk for vm in tuple(call.state.vms.values()) for disk in vm.disks}


def statistics(call: Call, of: Ids) -> dict[str, Any]:
    owner, queries = _above(call, of), call.engine.queries
    found = queries.vm_statistics(owner.id) if "vm_id" in of else queries.host_statistics(owner.id)
    return {statistic_id(one.name): one for one in found}


def tags_of(call: Call, of: Ids) -> dict[str, Tag]:
    tags = sorted(call.state.tags.values(), key=lambda tag: tag.name)
    return {tag.id: tag for tag in tags if tag.name in _above(call, of).tags}


def bearers(members: str) -> Records:
    def records(call: Call, of: Ids) -> dict[str, Any]:
        label, table = _existing(call.state.labels, of["label_id"]), getattr(call.state, members)
        return {key: table[key] for key in getattr(label, members)}

    return records


def no_group() -> markup.Refusal:
    """As an engine refuses it on Java 17: its query ends in a null pointer, whose text is the answer's."""
    cause = "org.ovirt.engine.core.common.scheduling.affinitygroup.getvmlabels()"
    return fault(400, f'cannot invoke "{cause}" because "ag" is null')


def groups(call: Call, of: Ids) -> dict[str, Any]:
    """Those of a cluster; any cluster's address serves for a group, but to list and to add."""
    groups = dict(call.state.groups)
    if "group_id" in of:
        return groups
    return {key: one for key, one in groups.items() if one.cluster == of["cluster_id"]}


def members(name: str, table: str) -> Records:
    def records(call: Call, of: Ids) -> dict[str, Any]:
        group, known = call.state.groups.get(of["group_id"]), getattr(call.state, table)
        if group is None:
            raise no_group()
        return {key: known[key] for key in getattr(group, name)}

    return records


def parts(name: str) -> Records:
    def records(call: Call, of: Ids) -> dict[str, Any]:
        policy = _existing(call.state.policies, of["policy_id"])
        found: dict[str, Any] = {}
        for part in getattr(policy, name):
            # One that is attached again, by the engine's bug, is shown again, and has no address of its own.
            found[part.unit if part.unit not in found else f"{part.unit} again {len(found)}"] = part
        return found

    return records


def events(call: Call, of: Ids) -> dict[str, Any]:
    """Events after `from`, newest first: with `max`, the newest of them and not the next."""
    if not of.get("event_id", "0").isdecimal():
        raise fault(400, f'For input string: "{of["event_id"]}"', markup.MALFORMED_ID)
    after = 0 if call.followed else call.number("from") or 0
    events = [event for event in call.engine.queries.events() if event.id > after or after <= 0]
    return {} if call.filtered else {str(event.id): event for event in events}


class _User(msgspec.Struct, frozen=True):
    id: str
    name: str
    directory: str

    @property
    def user_name(self) -> str:
        return f"{self.name}@{self.directory}"


def users(call: Call, _: Ids) -> dict[str, _User]:
    """Who asks."""
    principal, _at, profile = call.user_name.rpartition("@")
    own = user_id(call.user_name)
    return {own: _User(own, principal, f"{profile}-authz")}


def permissions(call: Call, of: Ids) -> dict[str, Permission]:
    """The permissions on a VM or a cluster, or those of who asks, which has one on the whole system.

    The engine shows an inherited permission as if it were on the object itself; only its id distinguishes it
    from one that is.
    """
    granted, name = tuple(call.state.permissions.values()), call.user_name
    own = Permission(id=stable_id("permission", name), role=stable_id("role", name), holder=user_id(name))
    if "user" in of:
        _existing(users(call, of), of["user"])
        return {one.id: one for one in (own, *(one for one in granted if one.holder == own.holder))}
    on: dict[str, str | None] = {"vm": None, "cluster": None}
    wanted: set[str | None] = {None}
    if "vm_id" in of:
        vm = _above(call, of)
        on["vm"], wanted = vm.id, {vm.id, vm.cluster, None}
    else:
        on["cluster"] = _existing(clusters(call, {}), of["cluster_id"]).id
        wanted.add(on["cluster"])
    found = [own, *(one for one in granted if (one.vm or one.cluster) in wanted)]
    return {one.id: replace(one, **on) for one in sorted(found, key=lambda one: one.id)}


def roles(call: Call, _: Ids) -> dict[str, Role]:
    """All roles, that of who asks first, which says what a simulator lets this user do."""
    own = Role(
        id=stable_id("role", call.user_name),
        name=f"RoleOf-{call.user_name}",
        administrative=call.user.admin,
        permits=("login", *sorted(call.user.permits)),
    )
    return {own.id: own} | call.state.roles


def permits(call: Call, of: Ids) -> dict[str, str]:
    return {name: name for name in _existing(roles(call, {}), of["role_id"]).permits}
