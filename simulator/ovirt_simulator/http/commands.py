"""What is at the addresses of the API: records, as far as who asks may see them, and commands.

Of commands it is said what they take from a body, and how they are carried out.
"""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, TypeAlias

from msgspec.structs import replace

from ovirt_simulator.core.commands.groups import DISABLED
from ovirt_simulator.core.engine import SEVERITIES, Engine
from ovirt_simulator.core.entities import Job, Permission, Role, Tag, stable_id, user_id
from ovirt_simulator.http import markup
from ovirt_simulator.http.call import Call, Node, Part, rule, taken
from ovirt_simulator.http.control import Permit
from ovirt_simulator.http.documents import statistic_id
from ovirt_simulator.http.markup import absent, fault
from ovirt_simulator.http.resource import Action, Given, Ids, Records, Run


def whole(name: str) -> Records:
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
    found, cluster = dict(call.state.groups), of["cluster_id"]
    return found if "group_id" in of else {key: one for key, one in found.items() if one.cluster == cluster}


def members_of(name: str, table: str) -> Records:
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


def users(call: Call, _: Ids) -> dict[str, Any]:
    """Who asks."""
    name, _at, profile = call.user_name.rpartition("@")
    own, directory = user_id(call.user_name), f"{profile}-authz"
    shown = SimpleNamespace(id=own, name=name, directory=directory, user_name=f"{name}@{directory}")
    return {own: shown}


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
    if "vm_id" in of:
        vm = _above(call, of)
        on, wanted = {"vm": vm.id, "cluster": None}, {vm.id, vm.cluster, None}
    else:
        cluster = _existing(clusters(call, {}), of["cluster_id"]).id
        on, wanted = {"vm": None, "cluster": cluster}, {cluster, None}
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


# -- What commands take from a body, and how they are carried out.
#: A command of the engine.
Command: TypeAlias = "Callable[[Engine], Callable[..., Any]]"


def does(command: Command, *names: str, **fixed: Any) -> Run:
    """Carry a command of the engine out, on what has these ids in the address, with what the body gives."""
    return lambda call, of, given: command(call.engine)(
        **{name: of[name] for name in names}, **fixed, **given, caller=call.caller
    )


CLUSTER_PARTS = taken(
    "name description ha_reservation:boolean count_threads_as_cores=threads_as_cores:boolean"
    " memory_overcommit_percent=memory_policy/over_commit/percent:integer policy_id=scheduling_policy@"
    " policy_name=scheduling_policy/name properties=custom_scheduling_policy_properties/property:pairs"
)
GROUP_PARTS = taken(
    "name description priority:number cluster@ vms=vms/vm:ids hosts=hosts/host:ids"
    " vm_labels=vm_labels/affinity_label:ids host_labels=host_labels/affinity_label:ids",
    vms_rule=rule("vms_rule", legacy=True),
    hosts_rule=rule("hosts_rule"),
)


def _with_rules(given: Given, present: Any) -> Given:
    """Give whole rules, as the engine maps what a body says of them; None keeps what is there.

    `enabled=false` disables; `enabled=true` without `positive` changes nothing.
    """
    rules = {}
    for name in given.keys() & {"vms_rule", "hosts_rule"}:
        before, said = getattr(present, name, DISABLED), given[name]
        changes = {key: value for key, value in said.items() if value is not None}
        enabled = said.get("enabled") is not False and (before.enabled or "positive" in changes)
        rules[name] = replace(before, **changes | {"enabled": enabled})
    return given | rules


def add_group(call: Call, of: Ids, given: Given) -> Any:
    groups = call.engine.affinity_groups
    return groups.add(of["cluster_id"], **_with_rules(given, None), caller=call.caller)


def edit_group(call: Call, of: Ids, given: Given) -> Any:
    changes = _with_rules(given, call.state.groups.get(of["group_id"]))
    return call.engine.affinity_groups.edit(of["group_id"], **changes, caller=call.caller)


LABEL_PARTS = taken("name vms=vms/vm:ids hosts=hosts/host:ids implicit=has_implicit_affinity_group:boolean")
POLICY_PARTS = taken("name description properties=properties/property:pairs")
UPGRADE_PARTS = taken("action=upgrade_action percent=upgrade_percent_complete:integer")


def upgrade_cluster(call: Call, of: Ids, given: Given) -> Job:
    """Mark the cluster as being upgraded, say how far that is, or take the mark away."""
    upgrades, cluster = call.engine.upgrades, of["cluster_id"]
    wanted = given.get("action")
    if wanted == "start":
        return upgrades.start(cluster, caller=call.caller)
    if wanted == "update_progress":
        return upgrades.progress(cluster, given.get("percent", 0), caller=call.caller)
    return upgrades.finish(cluster, caller=call.caller)


def _pinned_hosts(call: Call, node: Node) -> tuple[str, ...] | None:
    """A placement policy without hosts has none."""
    if node.find("placement_policy") is None:
        return None
    hosts = node.findall("placement_policy/hosts/host")
    return tuple(filter(None, (call.named(host, "hosts") for host in hosts)))


def _migratable(_: Call, node: Node) -> bool | None:
    """The state file knows of a VM's affinity only this."""
    affinity = node.findtext("placement_policy/affinity")
    return None if affinity is None else affinity.strip() == "migratable"


VM_PARTS = taken(
    "name description cluster@clusters ha=high_availability/enabled:boolean memory_mb=memory:megabytes"
    " ha_priority=high_availability/priority:integer guaranteed_mb=memory_policy/guaranteed:megabytes"
    " custom_properties=custom_properties/custom_property:pairs",
    pinned_hosts=Part(
        "placement_policy placement_policy/hosts/host placement_policy/hosts/host/name", _pinned_hosts
    ),
    migratable=Part("placement_policy/affinity", _migratable),
)
VM_PAST = "host os memory_policy/max status template"


def edit_vm(call: Call, of: Ids, given: Given) -> Any:
    """Change what the body names; the cluster by a command before, whatever becomes of the others."""
    if (cluster := given.pop("cluster", None)) is not None:
        call.engine.vms.change_cluster(of["vm_id"], cluster, caller=call.caller)
    return call.engine.vms.edit(of["vm_id"], **given, caller=call.caller)


def start(call: Call, of: Ids, given: Given) -> Job:
    """Start a VM, where its placement policy in the body says, if it says so."""
    if of["vm_id"] not in call.state.vms:
        getter = "org.ovirt.engine.core.common.businessentities.VM.getStatus()"
        owner = "org.ovirt.engine.core.bll.RunVmCommand.getVm()"
        cause = f'Cannot invoke "{getter}" because the return value of "{owner}" is null'
        raise fault(500, f"java.lang.NullPointerException: {cause}")
    return call.engine.vms.start(of["vm_id"], **given, caller=call.caller)


def acts(command: Command, name: str, permit: Permit, past: str = "reason force", takes: str = "") -> Action:
    """An action of VMs or hosts, whose command says by itself that they are not there."""
    return Action(does(command, name), taken(takes), f"filter {past}", permit=permit, checks=True)


#: What a client of the API may send along that counts for nothing here.
START_PAST = (
    "filter use_cloud_init use_sysprep use_initialization vm/bios vm/cdroms vm/console vm/display vm/floppies"
    " vm/initialization vm/name vm/os vm/stateless"
)
EVENT_PARTS = taken(
    "origin severity description correlation_id custom_id:integer time:moment cluster@ data_center@ host@ vm@"
    " user@"
)
EVENT_PAST = (
    "cluster/name code custom_data data_center/name flood_rate host/name index name template/name"
    " user/user_name vm/name"
)


def add_event(call: Call, _: Ids, given: Given) -> Any:
    if given["severity"] not in SEVERITIES:
        valid = ", ".join(f"'{word}'" for word in SEVERITIES)
        invalid = f"The string '{given['severity']}' isn't a valid value for the 'LogSeverity'"
        raise fault(400, f"{invalid} enumerated type. Valid values are: {valid}.", "Invalid value")
    return call.engine.events.add(**given, caller=call.caller)
