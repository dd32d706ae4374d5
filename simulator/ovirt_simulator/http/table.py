"""The table of resources: what is at each address of the API below /ovirt-engine/api, and what is done there.

What an engine has besides, and the simulator has not, is refused with 501: collections that no line names,
and methods that a line does not have. Actions are POSTs to `ADDRESS/<id>/NAME`.
"""

from collections.abc import Callable
from functools import cache, partial
from typing import Any

from werkzeug.routing import Map, Rule

from ovirt_simulator.http import commands
from ovirt_simulator.http import documents as shown
from ovirt_simulator.http.call import Call, taken
from ovirt_simulator.http.commands import acts, does, seen, whole
from ovirt_simulator.http.control import Permit
from ovirt_simulator.http.markup import absent
from ovirt_simulator.http.resource import Action, Change, Ids, Resource, Shape, parent

_VM_OWNER, _HOST_OWNER = (
    shown.statistics_of(parent(tag, f"{tag}s", f"{tag}_id", followed=False)) for tag in ("vm", "host")
)


def _group_members(step: str, members: str, shape: Shape, table: str) -> Resource:
    takes = taken("member_id=.@hosts" if members == "hosts" else "member_id=.@")
    return Resource(
        f"/clusters/<cluster_id>/affinitygroups/<group_id>/{step}",
        shape,
        commands.members_of(members, table),
        id="member_id",
        home=f"/{'affinitylabels' if table == 'labels' else table}",
        single=False,
        admins=True,
        permit=Permit.MANIPULATE_AFFINITY_GROUPS,
        post=Change(
            does(lambda e: e.affinity_groups.add_member, "group_id", members=members),
            takes,
            "name",
            needs="member_id=id",
            called=members.removesuffix("s"),
            checks=True,
        ),
        delete=Change(
            does(lambda e: e.affinity_groups.remove_member, "group_id", "member_id", members=members),
            checks=True,
        ),
    )


def _label_members(members: str, mention: Shape) -> Resource:
    return Resource(
        f"/affinitylabels/<label_id>/{members}",
        mention,
        commands.bearers(members),
        id="member_id",
        home=f"/{members}",
        admins=True,
        permit=Permit.TAG_MANAGEMENT,
        post=Change(
            does(lambda e: e.labels.add_member, "label_id", members=members),
            taken("member_id=.@"),
            needs="member_id=id",
        ),
        delete=Change(
            does(lambda e: e.labels.remove_member, "label_id", "member_id", members=members), checks=True
        ),
    )


def _policy_parts(name: str, shape: Shape, takes: str = "") -> Resource:
    return Resource(
        f"/schedulingpolicies/<policy_id>/{name}",
        shape,
        commands.parts(name),
        id="unit_id",
        admins=True,
        permit=Permit.EDIT_STORAGE_POOL_CONFIGURATION,
        # Answered with 200, not 201.
        post=Change(
            does(lambda e: e.policies.attach, "policy_id", kind=name),
            taken(f"unit_id=scheduling_policy_unit@ {takes}"),
            "name",
            needs="unit_id=scheduling_policy_unit.id",
            called=shape.tag,
        ),
        delete=Change(does(lambda e: e.policies.remove_unit, "policy_id", "unit_id"), checks=True),
    )


# fmt: off
RESOURCES = (
    Resource("/datacenters", shown.DATA_CENTER, seen("data_centers"), id="data_center_id"),
    Resource("/networks", shown.NETWORK, whole("networks")),
    Resource("/vnicprofiles", shown.VNIC_PROFILE, whole("vnic_profiles")),
    Resource("/clusters", shown.CLUSTER, commands.clusters, id="cluster_id", by_name=True, search="clusters",
             permit=Permit.EDIT_CLUSTER_CONFIGURATION,
             post=Change(does(lambda e: e.policies.add_cluster),
                         taken("name data_center_id=data_center@data_centers"), "cpu",
                         needs="name data_center_id=data_center.id|name", status=201),
             put=Change(does(lambda e: e.policies.update_cluster, "cluster_id"), commands.CLUSTER_PARTS,
                        "comment cpu data_center upgrade_in_progress upgrade_percent_complete"),
             delete=Change(does(lambda e: e.policies.remove_cluster, "cluster_id")),
             actions={"upgrade": Action(commands.upgrade_cluster, commands.UPGRADE_PARTS, "filter",
                                        permit=Permit.EDIT_CLUSTER_CONFIGURATION)},
             outline=Shape("cluster")),
    Resource("/clusters/<cluster_id>/affinitygroups", shown.AFFINITY_GROUP, commands.groups, id="group_id",
             home="/clusters/<cluster>/affinitygroups", by_name=True, admins=True, missing=commands.no_group,
             permit=Permit.MANIPULATE_AFFINITY_GROUPS,
             post=Change(commands.add_group, commands.GROUP_PARTS, "broken comment", needs="name",
                         called="group", status=201),
             put=Change(commands.edit_group, commands.GROUP_PARTS, "broken comment"),
             delete=Change(does(lambda e: e.affinity_groups.remove, "group_id"))),
    _group_members("vms", "vms", shown.VM_OUTLINE, "vms"),
    _group_members("hosts", "hosts", shown.HOST_OUTLINE, "hosts"),
    _group_members("vmlabels", "vm_labels", shown.AFFINITY_LABEL, "labels"),
    _group_members("hostlabels", "host_labels", shown.AFFINITY_LABEL, "labels"),
    # The host reboots unless it is not to.
    Resource("/hosts", shown.HOST, commands.hosts, id="host_id", by_name=True, search="hosts",
             actions={"activate": acts(lambda e: e.hosts.activate, "host_id", Permit.MANIPULATE_HOST),
                      "deactivate": acts(lambda e: e.hosts.deactivate, "host_id", Permit.MANIPULATE_HOST,
                                         "", "reason"),
                      "upgradecheck": acts(lambda e: e.host_upgrades.check, "host_id",
                                           Permit.MANIPULATE_HOST),
                      "upgrade": acts(lambda e: e.host_upgrades.upgrade, "host_id",
                                      Permit.EDIT_HOST_CONFIGURATION,
                                      "image timeout", "reboot:boolean")},
             outline=shown.HOST_ACTED),
    Resource("/hosts/<host_id>/statistics", _HOST_OWNER, commands.statistics, id="statistic_id"),
    Resource("/hosts/<host_id>/tags", shown.TAG, commands.tags_of, single=False, admins=True),
    Resource("/vms", shown.VM, commands.vms, id="vm_id", by_name=True, search="vms",
             permit=Permit.EDIT_VM_PROPERTIES,
             post=Change(does(lambda e: e.vms.create), commands.VM_PARTS, commands.VM_PAST,
                         needs="name cluster=cluster.id|name", status=201),
             put=Change(commands.edit_vm, commands.VM_PARTS, commands.VM_PAST),
             delete=Change(does(lambda e: e.vms.remove, "vm_id")),
             actions={"start": Action(commands.start,
                                      taken("host_id=vm/placement_policy/hosts/host@hosts"),
                                      commands.START_PAST, permit=Permit.RUN_VM, checks=True),
                      "stop": acts(lambda e: e.vms.stop, "vm_id", Permit.STOP_VM),
                      "shutdown": acts(lambda e: e.vms.shutdown, "vm_id", Permit.STOP_VM),
                      "suspend": acts(lambda e: e.vms.suspend, "vm_id", Permit.STOP_VM),
                      # A host that is named but unknown is refused before there is an action: 404.
                      "migrate": acts(lambda e: e.vms.migrate, "vm_id", Permit.MIGRATE_VM, "",
                                      "host_id=host@hosts cluster_id=cluster@ force:boolean"
                                      " closure=migrate_vms_in_affinity_closure:boolean"),
                      "cancelmigration": acts(lambda e: e.vms.cancel_migration, "vm_id", Permit.MIGRATE_VM)},
             outline=shown.VM_ACTED),
    Resource("/vms/<vm_id>/statistics", _VM_OWNER, commands.statistics, id="statistic_id"),
    Resource("/vms/<vm_id>/permissions", shown.PERMISSION, commands.permissions, single=False),
    Resource("/vms/<vm_id>/tags", shown.TAG, commands.tags_of, single=False, admins=True),
    Resource("/vms/<vm_id>/diskattachments", shown.DISK_ATTACHMENT, commands.of_vm("disks"), single=False),
    Resource("/vms/<vm_id>/nics", shown.NIC, commands.of_vm("nics"), id="nic_id",
             permit=Permit.EDIT_VM_PROPERTIES,
             post=Change(does(lambda e: e.vms.add_nic, "vm_id"),
                         taken("name vnic_profile@"), needs="name", status=201)),
    # The state knows none of these, which the module `ovirt_vm` looks through.
    *(Resource(f"/vms/<vm_id>/{step}", Shape(tag, "name"), commands.none_of_vm, single=False)
      for step, tag in (("numanodes", "vm_numa_node"), ("cdroms", "cdrom"), ("watchdogs", "watchdog"),
                        ("graphicsconsoles", "graphics_console"), ("hostdevices", "host_device"))),
    Resource("/templates", Shape("template", "name"), lambda _, __: {}, single=False),
    # What VMs have of a disk, if any has it.
    Resource("/disks", shown.DISK, commands.disks, listed=False),
    Resource("/affinitylabels", shown.AFFINITY_LABEL, whole("labels"), id="label_id", by_name=True,
             admins=True, permit=Permit.TAG_MANAGEMENT,
             post=Change(does(lambda e: e.labels.add), commands.LABEL_PARTS, "comment description",
                         needs="name", called="label", status=201),
             put=Change(does(lambda e: e.labels.edit, "label_id"), commands.LABEL_PARTS,
                        "comment description"),
             delete=Change(does(lambda e: e.labels.remove, "label_id"), checks=True)),
    _label_members("vms", shown.VM_MENTION),
    _label_members("hosts", shown.HOST_MENTION),
    # Filters, weights and balance in the body are ignored, as the engine ignores them.
    Resource("/schedulingpolicies", shown.SCHEDULING_POLICY, whole("policies"), id="policy_id",
             admins=True, permit=Permit.EDIT_STORAGE_POOL_CONFIGURATION,
             post=Change(does(lambda e: e.policies.add), commands.POLICY_PARTS, "balances filters weight",
                         needs="name", called="policy", status=201),
             put=Change(does(lambda e: e.policies.edit, "policy_id"), commands.POLICY_PARTS,
                        "balances filters weight"),
             delete=Change(does(lambda e: e.policies.remove, "policy_id"))),
    _policy_parts("filters", shown.FILTER, "position:integer"),
    _policy_parts("weights", shown.WEIGHT, "factor:integer"),
    _policy_parts("balances", shown.BALANCE),
    Resource("/schedulingpolicyunits", shown.SCHEDULING_POLICY_UNIT, whole("units"), admins=True),
    Resource("/users", shown.USER, commands.users, id="user"),
    Resource("/users/<user>/permissions", shown.PERMISSION, commands.permissions, single=False),
    Resource("/clusters/<cluster_id>/permissions", shown.PERMISSION, commands.permissions, single=False),
    Resource("/roles", shown.ROLE, commands.roles),
    Resource("/roles/<role_id>/permits", shown.PERMIT, commands.permits, single=False),
    Resource("/events", shown.EVENT, commands.events, id="event_id", search="events",
             permit=Permit.INJECT_EXTERNAL_EVENTS,
             post=Change(commands.add_event, commands.EVENT_PARTS, commands.EVENT_PAST,
                         needs="origin severity custom_id description",
                         status=201, checks=True)),
    Resource("/jobs", shown.JOB, lambda call, _: {job.id: job for job in call.engine.queries.jobs()},
             search="jobs", admins=True),
)
# fmt: on


@cache
def routes() -> Map:
    """Give the map from address and method to what answers it; all servers share it."""
    found: dict[tuple[str, str], tuple[Callable[[Call, Ids], Any], str | None]] = {}
    for resource in RESOURCES:
        entity = f"{resource.address}/<{resource.id}>"
        if resource.listed:
            found["GET", resource.address] = resource.list, resource.shape.plural
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


def _option(call: Call, of: Ids) -> str:
    """Give an option; one that the API does not know is absent. VMs have any custom properties here."""
    if of["name"] != "UserDefinedVMProperties":
        raise absent()
    return shown.option(of["name"], "")
