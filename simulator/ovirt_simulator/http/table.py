"""The table of resources: what is at each address of the API below /ovirt-engine/api, and what is done there.

What an engine has besides, and the simulator has not, is refused with 501: collections that no line names,
and methods that a line does not have. Actions are POSTs to `ADDRESS/<id>/NAME`.
"""

from collections.abc import Callable
from functools import cache, partial
from typing import Any

from werkzeug.routing import Map, Rule

from ovirt_simulator.core.commands.groups import Members
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.http import commands
from ovirt_simulator.http import documents as shown
from ovirt_simulator.http.call import Call, Part, boolean, id_of, integer, named, own_id, pairs, text
from ovirt_simulator.http.commands import acts, does
from ovirt_simulator.http.control import Permit
from ovirt_simulator.http.markup import absent
from ovirt_simulator.http.resource import NAME, Action, Change, Ids, Resource, Shape, parent

_VM_OWNER, _HOST_OWNER = (
    shown.statistics_of(parent(tag, f"{tag}s", f"{tag}_id", followed=False)) for tag in ("vm", "host")
)


def _group_members(step: str, members: Members, shape: Shape, table: str, root: str) -> Resource:
    steps = {"vms": "vms", "hosts": "hosts", "labels": "affinitylabels"}
    read = (lambda body: body.named("hosts")) if members is Members.HOSTS else (lambda body: body.id)
    permit = Permit.MANIPULATE_AFFINITY_GROUPS
    return Resource(
        address=f"/clusters/<cluster_id>/affinitygroups/<group_id>/{step}",
        shape=shape,
        records=commands.members_of(members.value, table),
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


def _label_members(members: str, mention: Shape) -> Resource:
    permit = Permit.TAG_MANAGEMENT
    return Resource(
        address=f"/affinitylabels/<label_id>/{members}",
        shape=mention,
        records=commands.bearers(members),
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


def _policy_parts(
    name: str, shape: Shape, takes: dict[str, Part], add: Callable[[Engine], Callable[..., Any]]
) -> Resource:
    return Resource(
        address=f"/schedulingpolicies/<policy_id>/{name}",
        shape=shape,
        records=commands.parts(name),
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


# fmt: off
RESOURCES = (
    Resource(address="/datacenters", shape=shown.DATA_CENTER, records=commands.seen("data_centers"),
             id="data_center_id", root="data_centers"),
    Resource(address="/networks", shape=shown.NETWORK, records=commands.whole("networks")),
    Resource(address="/vnicprofiles", shape=shown.VNIC_PROFILE, records=commands.whole("vnic_profiles"),
             root="vnic_profiles"),
    Resource(address="/clusters", shape=shown.CLUSTER, records=commands.clusters, id="cluster_id",
             by_name=True, search="clusters",
             post=Change(run=does(lambda e: e.policies.add_cluster), permit=Permit.EDIT_CLUSTER_CONFIGURATION,
                         takes={"name": text("name"),
                                "data_center_id": named("data_center", "data_centers")},
                         past="cpu", needs={"name": "name", "data_center.id|name": "data_center_id"},
                         status=201),
             put=Change(run=does(lambda e: e.policies.update_cluster, "cluster_id"),
                        permit=Permit.EDIT_CLUSTER_CONFIGURATION,
                        takes={"name": text("name"), "description": text("description"),
                               "ha_reservation": boolean("ha_reservation"),
                               "count_threads_as_cores": boolean("threads_as_cores"),
                               "memory_overcommit_percent": integer("memory_policy/over_commit/percent"),
                               "policy_id": id_of("scheduling_policy"),
                               "policy_name": text("scheduling_policy/name"),
                               "properties": pairs("custom_scheduling_policy_properties/property")},
                        past="comment cpu data_center upgrade_in_progress upgrade_percent_complete"),
             delete=Change(run=does(lambda e: e.policies.remove_cluster, "cluster_id"),
                           permit=Permit.EDIT_CLUSTER_CONFIGURATION),
             actions={"upgrade": Action(run=commands.upgrade_cluster,
                                        permit=Permit.EDIT_CLUSTER_CONFIGURATION,
                                        takes={"action": text("upgrade_action"),
                                               "percent": integer("upgrade_percent_complete")},
                                        past="filter")}, outline=Shape("cluster", ())),
    Resource(address="/clusters/<cluster_id>/affinitygroups", shape=shown.AFFINITY_GROUP,
             records=commands.groups, id="group_id", root="affinity_groups",
             home="/clusters/<cluster>/affinitygroups", by_name=True,
             admins=True, missing=commands.no_group,
             post=Change(run=commands.add_group, permit=Permit.MANIPULATE_AFFINITY_GROUPS,
                         takes=commands.GROUP_PARTS, past="broken comment", needs={"name": "name"},
                         called="group", status=201),
             put=Change(run=commands.edit_group, permit=Permit.MANIPULATE_AFFINITY_GROUPS,
                        takes=commands.GROUP_PARTS, past="broken comment"),
             delete=Change(run=does(lambda e: e.affinity_groups.remove, "group_id"),
                           permit=Permit.MANIPULATE_AFFINITY_GROUPS)),
    _group_members("vms", Members.VMS, shown.VM_OUTLINE, "vms", "vms"),
    _group_members("hosts", Members.HOSTS, shown.HOST_OUTLINE, "hosts", "hosts"),
    _group_members("vmlabels", Members.VM_LABELS, shown.AFFINITY_LABEL, "labels",
                           "affinity_labels"),
    _group_members("hostlabels", Members.HOST_LABELS, shown.AFFINITY_LABEL, "labels",
                           "affinity_labels"),
    # The host reboots unless it is not to.
    Resource(address="/hosts", shape=shown.HOST, records=commands.hosts, id="host_id", by_name=True,
             search="hosts",
             actions={"activate": acts(lambda e: e.hosts.activate, "host_id", Permit.MANIPULATE_HOST),
                      "deactivate": acts(lambda e: e.hosts.deactivate, "host_id", Permit.MANIPULATE_HOST,
                                         {"reason": text("reason")}, ""),
                      "upgradecheck": acts(lambda e: e.host_upgrades.check, "host_id",
                                           Permit.MANIPULATE_HOST),
                      "upgrade": acts(lambda e: e.host_upgrades.upgrade, "host_id",
                                      Permit.EDIT_HOST_CONFIGURATION, {"reboot": boolean("reboot")},
                                      "image timeout")}, outline=shown.HOST_ACTED),
    Resource(address="/hosts/<host_id>/statistics", shape=_HOST_OWNER, records=commands.statistics,
             id="statistic_id"),
    Resource(address="/hosts/<host_id>/tags", shape=shown.TAG, records=commands.tags_of, single=False,
             admins=True),
    Resource(address="/vms", shape=shown.VM, records=commands.vms, id="vm_id", by_name=True, search="vms",
             post=Change(run=commands.add_vm, permit=Permit.EDIT_VM_PROPERTIES, takes=commands.VM_PARTS,
                         past=commands.VM_PAST, needs={"name": "name", "cluster.id|name": "cluster"},
                         status=201),
             put=Change(run=commands.edit_vm, permit=Permit.EDIT_VM_PROPERTIES, takes=commands.VM_PARTS,
                        past=commands.VM_PAST),
             delete=Change(run=does(lambda e: e.vms.remove, "vm_id"), permit=Permit.EDIT_VM_PROPERTIES),
             actions={"start": Action(run=commands.start, permit=Permit.RUN_VM,
                                      takes={"host_id": named("vm/placement_policy/hosts/host", "hosts")},
                                      past=commands.START_PAST, checks=True),
                      "stop": acts(lambda e: e.vms.stop, "vm_id", Permit.STOP_VM),
                      "shutdown": acts(lambda e: e.vms.shutdown, "vm_id", Permit.STOP_VM),
                      "suspend": acts(lambda e: e.vms.suspend, "vm_id", Permit.STOP_VM),
                      # A host that is named but unknown is refused before there is an action: 404.
                      "migrate": acts(lambda e: e.vms.migrate, "vm_id", Permit.MIGRATE_VM,
                                      {"host_id": named("host", "hosts"), "cluster_id": id_of("cluster"),
                                       "force": boolean("force"),
                                       "closure": boolean("migrate_vms_in_affinity_closure")}, ""),
                      "cancelmigration": acts(lambda e: e.vms.cancel_migration, "vm_id", Permit.MIGRATE_VM)},
             outline=shown.VM_ACTED),
    Resource(address="/vms/<vm_id>/statistics", shape=_VM_OWNER, records=commands.statistics,
             id="statistic_id"),
    Resource(address="/vms/<vm_id>/permissions", shape=shown.PERMISSION, records=commands.permissions,
             single=False),
    Resource(address="/vms/<vm_id>/tags", shape=shown.TAG, records=commands.tags_of, single=False,
             admins=True),
    Resource(address="/vms/<vm_id>/diskattachments", shape=shown.DISK_ATTACHMENT,
             records=commands.of_vm("disks"), root="disk_attachments", single=False),
    Resource(address="/vms/<vm_id>/nics", shape=shown.NIC, records=commands.of_vm("nics"), id="nic_id",
             post=Change(run=does(lambda e: e.vms.add_nic, "vm_id"), permit=Permit.EDIT_VM_PROPERTIES,
                         takes={"name": text("name"), "vnic_profile": id_of("vnic_profile")},
                         needs={"name": "name"}, status=201)),
    # The state knows none of these, which the module `ovirt_vm` looks through.
    *(Resource(address=f"/vms/<vm_id>/{step}", shape=Shape(root.removesuffix("s"), (NAME,)),
               records=commands.none_of_vm, root=root, single=False)
      for step, root in (("numanodes", "vm_numa_nodes"), ("cdroms", "cdroms"), ("watchdogs", "watchdogs"),
                         ("graphicsconsoles", "graphics_consoles"), ("hostdevices", "host_devices"))),
    Resource(address="/templates", shape=Shape("template", (NAME,)), records=lambda _, __: {}, single=False),
    # What VMs have of a disk, if any has it.
    Resource(address="/disks", shape=shown.DISK, records=commands.disks, listed=False),
    Resource(address="/affinitylabels", shape=shown.AFFINITY_LABEL, records=commands.whole("labels"),
             id="label_id", root="affinity_labels", by_name=True, admins=True,
             post=Change(run=does(lambda e: e.labels.add), permit=Permit.TAG_MANAGEMENT,
                         takes=commands.LABEL_PARTS, past="comment description", needs={"name": "name"},
                         called="label", status=201),
             put=Change(run=does(lambda e: e.labels.edit, "label_id"), permit=Permit.TAG_MANAGEMENT,
                        takes=commands.LABEL_PARTS, past="comment description"),
             delete=Change(run=does(lambda e: e.labels.remove, "label_id"), permit=Permit.TAG_MANAGEMENT,
                           checks=True)),
    _label_members("vms", shown.VM_MENTION),
    _label_members("hosts", shown.HOST_MENTION),
    # Filters, weights and balance in the body are ignored, as the engine ignores them.
    Resource(address="/schedulingpolicies", shape=shown.SCHEDULING_POLICY,
             records=commands.whole("policies"), id="policy_id", root="scheduling_policies", admins=True,
             post=Change(run=does(lambda e: e.policies.add), permit=Permit.EDIT_STORAGE_POOL_CONFIGURATION,
                         takes=commands.POLICY_PARTS, past="balances filters weight", needs={"name": "name"},
                         called="policy", status=201),
             put=Change(run=does(lambda e: e.policies.edit, "policy_id"),
                        permit=Permit.EDIT_STORAGE_POOL_CONFIGURATION, takes=commands.POLICY_PARTS,
                        past="balances filters weight"),
             delete=Change(run=does(lambda e: e.policies.remove, "policy_id"),
                           permit=Permit.EDIT_STORAGE_POOL_CONFIGURATION)),
    _policy_parts("filters", shown.FILTER, {"position": integer("position")},
                          lambda e: e.policies.add_filter),
    _policy_parts("weights", shown.WEIGHT, {"factor": integer("factor")},
                          lambda e: e.policies.add_weight),
    _policy_parts("balances", shown.BALANCE, {}, lambda e: e.policies.set_balance),
    Resource(address="/schedulingpolicyunits", shape=shown.SCHEDULING_POLICY_UNIT,
             records=commands.whole("units"), root="scheduling_policy_units", admins=True),
    Resource(address="/users", shape=shown.USER, records=commands.users, id="user"),
    Resource(address="/users/<user>/permissions", shape=shown.PERMISSION, records=commands.permissions,
             single=False),
    Resource(address="/clusters/<cluster_id>/permissions", shape=shown.PERMISSION,
             records=commands.permissions, single=False),
    Resource(address="/roles", shape=shown.ROLE, records=commands.roles),
    Resource(address="/roles/<role_id>/permits", shape=shown.PERMIT, records=commands.permits,
             single=False),
    Resource(address="/events", shape=shown.EVENT, records=commands.events, id="event_id", search="events",
             post=Change(run=commands.add_event, permit=Permit.INJECT_EXTERNAL_EVENTS,
                         takes={"origin": text("origin"), "severity": text("severity"),
                                "custom_id": integer("custom_id"), "description": text("description"),
                                "correlation_id": text("correlation_id"), "time": commands.time("time"),
                                **{name: id_of(name) for name in ("cluster", "data_center", "host", "vm")},
                                "user": id_of("user")},
                         past=commands.EVENT_PAST,
                         needs={name: name for name in ("origin", "severity", "custom_id", "description")},
                         status=201, checks=True)),
    Resource(address="/jobs", shape=shown.JOB,
             records=lambda call, _: {job.id: job for job in call.engine.queries.jobs()}, search="jobs",
             admins=True),
)
# fmt: on


@cache
def routes() -> Map:
    """Give the map from address and method to what answers it; all servers share it."""
    found: dict[tuple[str, str], tuple[Callable[[Call, Ids], Any], str | None]] = {}
    for resource in RESOURCES:
        entity = f"{resource.address}/<{resource.id}>"
        root = resource.root or resource.address.rpartition("/")[2]
        if resource.listed:
            found["GET", resource.address] = resource.list, root
        if resource.single:
            found["GET", entity] = resource.get, None
        for method, address in (("POST", resource.address), ("PUT", entity), ("DELETE", entity)):
            change: Change | None = getattr(resource, method.lower())
            if change is not None:
                found[method, address] = partial(resource.carry_out, method=method, change=change), None
        for name in resource.actions:
            found["POST", f"{entity}/{name}"] = partial(resource.act, name=name), None
    found["GET", "/"] = lambda call, _: shown.api(call), None
    found["GET", "/options/<name>"] = _option, None
    rules = [Rule(address, endpoint=answer, methods=[method]) for (method, address), answer in found.items()]
    return Map(rules, strict_slashes=False, merge_slashes=False)


#: VMs have whatever custom properties they are given here.
_OPTIONS = {"UserDefinedVMProperties": ""}


def _option(call: Call, of: Ids) -> str:
    """Give an option; one that the API does not know is absent."""
    if of["name"] not in _OPTIONS:
        raise absent()
    return shown.option(of["name"], _OPTIONS[of["name"]])
