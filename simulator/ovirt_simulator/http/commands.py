"""What commands take from a body, and how they are carried out."""

from collections.abc import Callable, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any

from ovirt_simulator.core.commands.groups import DISABLED, Members
from ovirt_simulator.core.engine import SEVERITIES, Engine
from ovirt_simulator.core.entities import Job
from ovirt_simulator.http import records
from ovirt_simulator.http.call import (
    Body,
    Call,
    Part,
    boolean,
    id_of,
    ids,
    integer,
    megabytes,
    named,
    number,
    own_id,
    pairs,
    rule,
    text,
)
from ovirt_simulator.http.markup import fault
from ovirt_simulator.http.resource import Action, Change, Given, Ids, Resource, Run, Shape
from ovirt_simulator.http.sso import Permit


def does(command: Callable[[Engine], Callable[..., Any]], *names: str, **fixed: Any) -> Run:
    """Carry a command of the engine out, on what has these ids in the address, with what the body gives."""
    return lambda call, of, given: command(call.engine)(
        **{name: of[name] for name in names}, **fixed, **given, caller=call.caller
    )


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


def _with_rules(given: Given, present: Any) -> Given:
    before = {"vms_rule": DISABLED, "hosts_rule": DISABLED}
    if present is not None:
        before = {"vms_rule": present.vms_rule, "hosts_rule": present.hosts_rule}
    rules = {name: given[name].applied(rule) for name, rule in before.items() if name in given}
    return given | rules


def add_group(call: Call, of: Ids, given: Given) -> Any:
    fields = _with_rules(given, None)
    return call.engine.affinity_groups.add(of["cluster_id"], **fields, caller=call.caller)


def edit_group(call: Call, of: Ids, given: Given) -> Any:
    changes = _with_rules(given, call.state.groups.get(of["group_id"]))
    return call.engine.affinity_groups.edit(of["group_id"], **changes, caller=call.caller)


def group_members(step: str, members: Members, shape: Shape, table: str, root: str) -> Resource:
    steps = {"vms": "vms", "hosts": "hosts", "labels": "affinitylabels"}
    read = (lambda body: body.named("hosts")) if members is Members.HOSTS else (lambda body: body.id)
    permit = Permit.MANIPULATE_AFFINITY_GROUPS
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
            run=does(lambda e: e.affinity_groups.add_member, "group_id", members=members),
            permit=permit,
            takes={"member_id": Part("name", read)},
            needs={"id": "member_id"},
            called=members.removesuffix("s"),
            checks=True,
        ),
        delete=Change(
            run=does(lambda e: e.affinity_groups.remove_member, "group_id", "member_id", members=members),
            permit=permit,
            checks=True,
        ),
    )


LABEL_PARTS = {
    "name": text("name"),
    "vms": ids("vms/vm"),
    "hosts": ids("hosts/host"),
    "implicit": boolean("has_implicit_affinity_group"),
}


def label_members(members: str, mention: Shape) -> Resource:
    permit = Permit.TAG_MANAGEMENT
    return Resource(
        address=f"/affinitylabels/<label_id>/{members}",
        shape=mention,
        records=records.bearers(members),
        id="member_id",
        home=f"/{members}",
        admins=True,
        post=Change(
            run=does(lambda e: e.labels.add_member, "label_id", members=members),
            permit=permit,
            takes={"member_id": own_id()},
            needs={"id": "member_id"},
        ),
        delete=Change(
            run=does(lambda e: e.labels.remove_member, "label_id", "member_id", members=members),
            permit=permit,
            checks=True,
        ),
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
            run=does(lambda e: e.policies.remove_unit, "policy_id", "unit_id"),
            permit=Permit.EDIT_STORAGE_POOL_CONFIGURATION,
            checks=True,
        ),
    )


def upgrade_cluster(call: Call, of: Ids, given: Given) -> Job:
    """Mark the cluster as being upgraded, say how far that is, or take the mark away."""
    upgrades, cluster = call.engine.upgrades, of["cluster_id"]
    wanted = given.get("action")
    if wanted == "start":
        return upgrades.start(cluster, caller=call.caller)
    if wanted == "update_progress":
        return upgrades.progress(cluster, given.get("percent", 0), caller=call.caller)
    return upgrades.finish(cluster, caller=call.caller)


def _pinned_hosts(body: Body) -> tuple[str, ...] | None:
    """A placement policy without hosts has none."""
    policy = body.child("placement_policy")
    if policy is None:
        return None
    return tuple(filter(None, (host.named("hosts") for host in policy.children("hosts/host"))))


def _migratable(body: Body) -> bool | None:
    """The state file knows of a VM's affinity only this."""
    affinity = body.text("placement_policy/affinity")
    return None if affinity is None else affinity == "migratable"


VM_PARTS = {
    "name": text("name"),
    "description": text("description"),
    "cluster": named("cluster", "clusters"),
    "ha": boolean("high_availability/enabled"),
    "ha_priority": integer("high_availability/priority"),
    "memory_mb": megabytes("memory"),
    "guaranteed_mb": megabytes("memory_policy/guaranteed"),
    "custom_properties": pairs("custom_properties/custom_property"),
    "pinned_hosts": Part(
        "placement_policy placement_policy/hosts/host placement_policy/hosts/host/name", _pinned_hosts
    ),
    "migratable": Part("placement_policy/affinity", _migratable),
}
VM_PAST = "host os memory_policy/max status template"


def add_vm(call: Call, _: Ids, given: Given) -> Any:
    return call.engine.vms.create(given.pop("cluster"), **given, caller=call.caller)


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
