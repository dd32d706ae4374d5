"""What commands take from a body, and how they are carried out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any

from ovirt_placement.model import Nic
from ovirt_simulator.core.commands.external_events import SEVERITIES
from ovirt_simulator.core.commands.groups import DISABLED, AffinityGroupEdit, Members
from ovirt_simulator.core.commands.vms import VmEdit
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.core.entities import Job
from ovirt_simulator.http import markup, records
from ovirt_simulator.http.call import (
    Body,
    Call,
    Part,
    boolean,
    element,
    id_of,
    ids,
    integer,
    megabytes,
    number,
    own_id,
    pairs,
    rule,
    text,
    whole,
)
from ovirt_simulator.http.markup import fault
from ovirt_simulator.http.resource import Action, Change, Given, Ids, Resource, Run, Shape
from ovirt_simulator.http.sso import Permit


def does(command: Callable[[Engine], Callable[..., Any]], *names: str) -> Run:
    """Carry a command of the engine out, on what has these ids in the address, with what the body gives."""
    return lambda call, of, given: command(call.engine)(
        *(of[name] for name in names), **given, caller=call.caller
    )


def _named(call: Call, reference: Body | None, table: str) -> str | None:
    """Give the id of what a body refers to by id or name; 404 for an unknown name."""
    if reference is None or reference.id is not None:
        return None if reference is None else reference.id
    name = reference.text("name")
    if name is None:
        return None
    for record in tuple(getattr(call.state, table).values()):
        if record.name == name:
            return str(record.id)
    raise fault(404, f"Entity not found: {name}")


def _resolved(call: Call, given: Given, **tables: str) -> Given:
    """Put ids in the place of what the body refers to by id or name."""
    found = {name: _named(call, given.get(name), table) for name, table in tables.items()}
    return given | {name: key for name, key in found.items() if key is not None}


GROUP_PARTS = {
    "name": text("name"),
    "description": text("description"),
    "priority": number("priority"),
    "cluster": id_of("cluster"),
    "vms_rule": rule("vms_rule", legacy=True),
    "hosts_rule": rule("hosts_rule"),
    "vms": ids("vms/vm"),
    "hosts": ids("hosts/host"),
    "vm_labels": ids("vm_labels/affinity_label"),
    "host_labels": ids("host_labels/affinity_label"),
}


def _group_edit(given: Given, present: Any) -> AffinityGroupEdit:
    before = {"vms_rule": DISABLED, "hosts_rule": DISABLED}
    if present is not None:
        before = {"vms_rule": present.vms_rule, "hosts_rule": present.hosts_rule}
    rules = {name: given[name].applied(rule) for name, rule in before.items() if name in given}
    return AffinityGroupEdit(**(given | rules))


def add_group(call: Call, of: Ids, given: Given) -> Any:
    edit = _group_edit(given, None)
    return call.engine.affinity_groups.add(of["cluster_id"], edit, caller=call.caller)


def edit_group(call: Call, of: Ids, given: Given) -> Any:
    edit = _group_edit(given, call.state.groups.get(of["group_id"]))
    return call.engine.affinity_groups.edit(of["group_id"], edit, caller=call.caller)


def _add_member(members: Members) -> Callable[[Call, Ids, Given], Any]:
    def run(call: Call, of: Ids, given: Given) -> Any:
        """Add a member; a VM alone is echoed, and not answered with an action."""
        member = given["id"].id
        if members is Members.HOSTS:
            member = _named(call, given["id"], "hosts")
        if member is None:
            raise markup.incomplete(members.removesuffix("s"), "id")
        call.engine.affinity_groups.add_member(of["group_id"], members, member, caller=call.caller)
        return call.state.vms[member] if members is Members.VMS else None

    return run


def _remove_member(members: Members) -> Callable[[Call, Ids, Given], None]:
    return lambda call, of, _: call.engine.affinity_groups.remove_member(
        of["group_id"], members, of["member_id"], caller=call.caller
    )


def group_members(step: str, members: Members, shape: Shape, table: str, root: str) -> Resource:
    steps = {"vms": "vms", "hosts": "hosts", "labels": "affinitylabels"}
    return Resource(
        address=f"/clusters/<cluster_id>/affinitygroups/<group_id>/{step}",
        shape=shape,
        records=records.members(members.value, table),
        id="member_id",
        root=root,
        home=f"/{steps[table]}",
        single=False,
        admins=True,
        post=Change(
            run=_add_member(members),
            permit=Permit.MANIPULATE_AFFINITY_GROUPS,
            takes={"id": whole("name")},
            checks=True,
        ),
        delete=Change(run=_remove_member(members), permit=Permit.MANIPULATE_AFFINITY_GROUPS, checks=True),
    )


LABEL_PARTS = {
    "name": text("name"),
    "vms": ids("vms/vm"),
    "hosts": ids("hosts/host"),
    "implicit": boolean("has_implicit_affinity_group"),
}


def label_members(members: str, name: str, mention: Shape) -> Resource:
    def add(call: Call, of: Ids, given: Given) -> Any:
        call.engine.labels.add_member(of["label_id"], members, given["id"], caller=call.caller)
        return getattr(call.state, members)[given["id"]]

    def remove(call: Call, of: Ids, _: Given) -> None:
        call.engine.labels.remove_member(of["label_id"], members, of[name], caller=call.caller)

    permit = Permit.TAG_MANAGEMENT
    return Resource(
        address=f"/affinitylabels/<label_id>/{members}",
        shape=mention,
        records=records.bearers(members),
        id=name,
        home=f"/{members}",
        admins=True,
        post=Change(run=add, permit=permit, takes={"id": own_id()}, needs={"id": "id"}),
        delete=Change(run=remove, permit=permit, checks=True),
    )


POLICY_PARTS = {
    "name": text("name"),
    "description": text("description"),
    "properties": pairs("properties/property"),
}


def policy_parts(
    name: str, shape: Shape, takes: dict[str, Part], add: Callable[[Engine], Callable[..., Any]]
) -> Resource:
    return Resource(
        address=f"/schedulingpolicies/<policy_id>/{name}",
        shape=shape,
        records=records.parts(name),
        id="unit_id",
        admins=True,
        # Answered with 200, not 201.
        post=Change(
            run=does(add, "policy_id"),
            permit=Permit.EDIT_STORAGE_POOL_CONFIGURATION,
            takes={"unit_id": id_of("scheduling_policy_unit")} | takes,
            past="name",
            needs={"scheduling_policy_unit.id": "unit_id"},
            called=shape.tag,
        ),
        delete=Change(
            run=lambda call, of, _: call.engine.policies.remove_unit(
                of["policy_id"], of["unit_id"], caller=call.caller
            ),
            permit=Permit.EDIT_STORAGE_POOL_CONFIGURATION,
            checks=True,
        ),
    )


def edit_cluster(call: Call, of: Ids, given: Given) -> Any:
    policy = given.pop("policy", None)
    named = {} if policy is None else {"policy_id": policy.id, "policy_name": policy.text("name")}
    return call.engine.policies.update_cluster(of["cluster_id"], **given, **named, caller=call.caller)


def add_cluster(call: Call, _: Ids, given: Given) -> Any:
    data_center = _named(call, given["data_center"], "data_centers") or ""
    return call.engine.policies.add_cluster(given["name"], data_center, caller=call.caller)


def upgrade_cluster(call: Call, of: Ids, given: Given) -> Job:
    """Mark the cluster as being upgraded, say how far that is, or take the mark away."""
    upgrades, cluster = call.engine.upgrades, of["cluster_id"]
    wanted = given.get("action")
    if wanted == "start":
        return upgrades.start(cluster, caller=call.caller)
    if wanted == "update_progress":
        return upgrades.progress(cluster, given.get("percent", 0), caller=call.caller)
    return upgrades.finish(cluster, caller=call.caller)


VM_PARTS = {
    "name": text("name"),
    "description": text("description"),
    "cluster": element("cluster", "name"),
    "ha": boolean("high_availability/enabled"),
    "ha_priority": integer("high_availability/priority"),
    "memory_mb": megabytes("memory"),
    "guaranteed_mb": megabytes("memory_policy/guaranteed"),
    "custom_properties": pairs("custom_properties/custom_property"),
    "placement": element("placement_policy", "affinity", "hosts/host", "hosts/host/name"),
}
VM_PAST = "host os memory_policy/max status template"


def _vm_edit(call: Call, given: Given) -> VmEdit:
    """Read a placement policy, which without hosts has none; the state file knows of its affinity little."""
    policy = given.pop("placement", None)
    if policy is not None:
        hosts = (_named(call, host, "hosts") for host in policy.children("hosts/host"))
        given["pinned_hosts"] = tuple(host for host in hosts if host is not None)
        if (affinity := policy.text("affinity")) is not None:
            given["migratable"] = affinity == "migratable"
    return VmEdit(**given)


def add_vm(call: Call, _: Ids, given: Given) -> Any:
    cluster = _named(call, given.pop("cluster"), "clusters")
    return call.engine.vms.create(cluster or "", _vm_edit(call, given), caller=call.caller)


def edit_vm(call: Call, of: Ids, given: Given) -> Any:
    """Change what the body names; the cluster by a command before, whatever becomes of the others."""
    cluster = _named(call, given.pop("cluster", None), "clusters")
    if cluster is not None:
        call.engine.vms.change_cluster(of["vm_id"], cluster, caller=call.caller)
    return call.engine.vms.edit(of["vm_id"], _vm_edit(call, given), caller=call.caller)


def start(call: Call, of: Ids, given: Given) -> Job:
    """Start a VM, where its placement policy in the body says, if it says so."""
    if of["vm_id"] not in call.state.vms:
        getter = "org.ovirt.engine.core.common.businessentities.VM.getStatus()"
        owner = "org.ovirt.engine.core.bll.RunVmCommand.getVm()"
        cause = f'Cannot invoke "{getter}" because the return value of "{owner}" is null'
        raise fault(500, f"java.lang.NullPointerException: {cause}")
    return call.engine.vms.start(of["vm_id"], **_resolved(call, given, host_id="hosts"), caller=call.caller)


def migrate(call: Call, of: Ids, given: Given) -> Job:
    """Begin a migration. A host that is named but unknown is refused before there is an action: 404."""
    return call.engine.vms.migrate(of["vm_id"], **_resolved(call, given, host_id="hosts"), caller=call.caller)


def acts(
    command: Callable[[Engine], Callable[..., Any]],
    name: str,
    permit: Permit,
    takes: Mapping[str, Part] = MappingProxyType({}),
    past: str = "reason force",
) -> Action:
    """An action of VMs or hosts, whose command says by itself that they are not there."""
    run = does(command, name)
    return Action(run=run, permit=permit, takes=takes, past=f"filter {past}", checks=True)


def add_nic(call: Call, of: Ids, given: Given) -> Any:
    nic = Nic(id="", name=given["name"], vnic_profile=given.get("vnic_profile"))
    return call.engine.vms.add_nic(of["vm_id"], nic, caller=call.caller)


#: What a client of the API may send along that counts for nothing here.
START_PAST = (
    "filter use_cloud_init use_sysprep use_initialization vm/bios vm/cdroms vm/console vm/display vm/floppies"
    " vm/initialization vm/name vm/os vm/stateless"
)
EVENT_PAST = (
    "cluster/name code custom_data data_center/name flood_rate host/name index name template/name"
    " user/user_name vm/name"
)


def add_event(call: Call, _: Ids, given: Given) -> Any:
    if given["severity"] not in SEVERITIES:
        valid = ", ".join(f"'{word}'" for word in SEVERITIES)
        invalid = (
            f"The string '{given['severity']}' isn't a valid value for the 'LogSeverity' enumerated type."
        )
        raise fault(400, f"{invalid} Valid values are: {valid}.", "Invalid value")
    return call.engine.events.add(**given, caller=call.caller)


def time(path: str) -> Part:
    return Part(path, lambda body: body.converted(path, datetime.fromisoformat))
