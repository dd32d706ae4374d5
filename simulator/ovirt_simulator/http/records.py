"""What is at the addresses of the API: the engine's records, as far as who asks may see them."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace

from ovirt_simulator.core.entities import ROOT_TAG, Tag, stable_id, user_id
from ovirt_simulator.core.roles import Permission, Role
from ovirt_simulator.http import markup
from ovirt_simulator.http.call import Call
from ovirt_simulator.http.documents import statistic_id
from ovirt_simulator.http.markup import absent, fault
from ovirt_simulator.http.resource import Ids, Records

#: What is known of a user: the id, and the principal without the directory.
_DIRECTORY = "internal-authz"


def table(name: str) -> Records:
    return lambda call, _: getattr(call.state, name)


def vms(call: Call, _: Ids) -> dict[str, Any]:
    vms = call.state.vms
    return {vm_id: vms[vm_id] for vm_id in call.user.vms if vm_id in vms} if call.filtered else vms


def hosts(call: Call, _: Ids) -> dict[str, Any]:
    return {} if call.filtered else call.state.hosts


def clusters(call: Call, of: Ids) -> dict[str, Any]:
    """Those of a user's VMs, where queries are filtered; or of a data center."""
    clusters = dict(call.state.clusters)
    if call.filtered:
        own = {vm.cluster for vm in vms(call, of).values()}
        clusters = {key: one for key, one in clusters.items() if key in own}
    if "data_center_id" in of:
        _existing(data_centers(call, {}), of["data_center_id"])
        clusters = {key: one for key, one in clusters.items() if one.data_center == of["data_center_id"]}
    return clusters


def data_centers(call: Call, _: Ids) -> dict[str, Any]:
    found = dict(call.state.data_centers)
    if call.filtered:
        own = {cluster.data_center for cluster in clusters(call, {}).values()}
        found = {key: one for key, one in found.items() if key in own}
    return found


def _existing(records: Any, key: str) -> Any:
    if key not in records:
        raise absent()
    return records[key]


def _vm(call: Call, of: Ids) -> Any:
    return _existing(vms(call, of), of["vm_id"])


def _above(call: Call, of: Ids) -> Any:
    """The VM or host that an address goes on below."""
    return _vm(call, of) if "vm_id" in of else _existing(hosts(call, of), of["host_id"])


def of_vm(name: str) -> Records:
    return lambda call, of: {one.id: one for one in getattr(_vm(call, of), name)}


def none_of_vm(call: Call, of: Ids) -> dict[str, Any]:
    _vm(call, of)
    return {}


def disks(call: Call, _: Ids) -> dict[str, Any]:
    """What VMs have of disks."""
    return {disk.id: disk for vm in tuple(call.state.vms.values()) for disk in vm.disks}


def statistics(call: Call, of: Ids) -> dict[str, Any]:
    owner, queries = _above(call, of), call.engine.queries
    found = queries.vm_statistics(owner.id) if "vm_id" in of else queries.host_statistics(owner.id)
    return {statistic_id(one.name): one for one in found}


def tags(call: Call, _: Ids) -> dict[str, Tag]:
    """All tags, the root last."""
    tags = sorted(call.state.tags.values(), key=lambda tag: tag.name)
    return {tag.id: tag for tag in (*tags, ROOT_TAG)}


def tags_of(call: Call, of: Ids) -> dict[str, Tag]:
    names = _above(call, of).tags
    return {key: tag for key, tag in tags(call, of).items() if tag.name in names and tag is not ROOT_TAG}


def labels(call: Call, of: Ids) -> dict[str, Any]:
    """All labels, or those that a VM or host has."""
    labels = dict(call.state.labels)
    for name, members in (("vm_id", "vms"), ("host_id", "hosts")):
        if name in of:
            _above(call, of)
            labels = {key: one for key, one in labels.items() if of[name] in getattr(one, members)}
    return labels


def bearers(members: str) -> Records:
    def records(call: Call, of: Ids) -> dict[str, Any]:
        label, table = _existing(call.state.labels, of["label_id"]), getattr(call.state, members)
        return {key: table[key] for key in getattr(label, members)}

    return records


def _group(call: Call, of: Ids) -> Any:
    """Any cluster's address serves for a group, but to list and to add."""
    if of["group_id"] not in call.state.groups:
        raise no_group()
    return call.state.groups[of["group_id"]]


def no_group() -> markup.Refusal:
    """As an engine refuses it on Java 17: its query ends in a null pointer, whose text is the answer's."""
    cause = "org.ovirt.engine.core.common.scheduling.affinitygroup.getvmlabels()"
    return fault(400, f'cannot invoke "{cause}" because "ag" is null')


def groups(call: Call, of: Ids) -> dict[str, Any]:
    groups = dict(call.state.groups)
    if "group_id" in of:
        return groups
    return {key: one for key, one in groups.items() if one.cluster == of["cluster_id"]}


def members(name: str, table: str) -> Records:
    def records(call: Call, of: Ids) -> dict[str, Any]:
        known = getattr(call.state, table)
        return {key: known[key] for key in getattr(_group(call, of), name)}

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


def _events(call: Call, _: Ids) -> dict[str, Any]:
    """Events after `from`, newest first: with `max`, the newest of them and not the next."""
    after = 0 if call.followed else call.number("from") or 0
    events = [event for event in call.engine.queries.events() if event.id > after or after <= 0]
    if call.filtered:
        events = [event for event in events if event.vm is not None and event.vm.id in call.user.vms]
    return {str(event.id): event for event in events}


def event(call: Call, of: Ids) -> dict[str, Any]:
    if not of.get("event_id", "0").isdecimal():
        raise fault(400, f'For input string: "{of["event_id"]}"', markup.MALFORMED_ID)
    return _events(call, of)


class _User(msgspec.Struct, frozen=True):
    id: str
    name: str
    directory: str = _DIRECTORY

    @property
    def user_name(self) -> str:
        """The name as the API shows it; who is named like an id has no profile in it."""
        return f"{self.name}@{self.directory}" if self.id != self.name else f"{self.name}-authz"


def users(call: Call, _: Ids) -> dict[str, _User]:
    """Who asks, and who has permissions."""
    principal, _at, profile = call.user_name.rpartition("@")
    own = user_id(call.user_name)
    holders = {one.holder for one in tuple(call.state.permissions.values()) if not one.is_group}
    return {own: _User(own, principal, f"{profile}-authz")} | {
        holder: _User(holder, holder) for holder in sorted(holders - {own})
    }


def permissions(call: Call, of: Ids) -> dict[str, Permission]:
    """The permissions on a VM, a cluster or the whole system, or those of a user.

    The engine shows an inherited permission as if it were on the object itself; only its id distinguishes it
    from one that is. Who asks has a permission of its own on the whole system.
    """
    granted = tuple(call.state.permissions.values())
    name, user = call.user_name, of.get("user")
    role, holder = stable_id("role", name), user_id(name)
    own = Permission(id=stable_id("permission", name), role=role, holder=holder)
    if user is not None:
        _existing(users(call, of), user)
        held = [one for one in granted if one.holder == user]
        return {one.id: one for one in ([own, *held] if user == holder else held)}
    on: dict[str, str | None] = {"vm": None, "cluster": None}
    wanted: set[str | None] = {None}
    if "vm_id" in of:
        vm = _vm(call, of)
        on["vm"], wanted = vm.id, {vm.id, vm.cluster, None}
    elif "cluster_id" in of:
        on["cluster"] = _existing(clusters(call, {}), of["cluster_id"]).id
        wanted.add(on["cluster"])
    elif not call.user.admin:
        return {}
    found = [own, *(one for one in granted if (one.vm or one.cluster) in wanted)]
    return {one.id: replace(one, **on) for one in sorted(found, key=lambda one: one.id)}


def roles(call: Call, of: Ids) -> dict[str, Role]:
    """All roles, that of who asks first, which says what a simulator lets this user do; or a user's own."""
    own = Role(
        id=stable_id("role", call.user_name),
        name=f"RoleOf-{call.user_name}",
        administrative=call.user.admin,
        permits=("login", *sorted(call.user.permits)),
    )
    known = {own.id: own} | call.state.roles
    if "user" not in of:
        return known
    held = permissions(call, of).values()
    return {one.role: known[one.role] for one in held if one.vm is None and one.cluster is None}


def permits(call: Call, of: Ids) -> dict[str, str]:
    return {name: name for name in _existing(roles(call, {}), of["role_id"]).permits}
