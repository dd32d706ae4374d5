"""Every address of the API below /ovirt-engine/api, and the resource that answers each of its methods."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeAlias

import msgspec
from werkzeug.routing import Map, Rule

from ovirt_simulator.core.affinity_commands import Members
from ovirt_simulator.http.resources import (
    affinity_groups,
    affinity_labels,
    assigned_permissions,
    clusters,
    devices,
    empty,
    events,
    host_actions,
    hosts,
    infrastructure,
    jobs,
    mac_pools,
    named,
    operating_systems,
    options,
    permissions,
    policies,
    snapshots,
    statistics,
    storage,
    tags,
    templates,
    transfers,
    users,
    vm_actions,
    vms,
)

Answering: TypeAlias = "Callable[..., Any]"


class Resource(msgspec.Struct, frozen=True):
    """What answers one method of an address: with its root element, its items, or a whole response."""

    answer: Answering
    #: The root element around the items of a list; None for what is no list.
    root: str | None = None


_LISTS: dict[str, tuple[str, Answering]] = {
    "/clusters": ("clusters", clusters.list_clusters),
    "/clusters/<cluster_id>/affinitygroups": ("affinity_groups", affinity_groups.list_groups),
    "/clusters/<cluster_id>/affinitygroups/<group_id>/vms": ("vms", affinity_groups.list_vms),
    "/clusters/<cluster_id>/affinitygroups/<group_id>/hosts": ("hosts", affinity_groups.list_hosts),
    "/clusters/<cluster_id>/affinitygroups/<group_id>/vmlabels": (
        "affinity_labels",
        affinity_groups.list_vm_labels,
    ),
    "/clusters/<cluster_id>/affinitygroups/<group_id>/hostlabels": (
        "affinity_labels",
        affinity_groups.list_host_labels,
    ),
    "/clusters/<cluster_id>/permissions": ("permissions", assigned_permissions.list_of_cluster),
    "/clusters/<cluster_id>/networks": ("networks", infrastructure.list_networks_of),
    "/hosts": ("hosts", hosts.list_hosts),
    "/hosts/<host_id>/statistics": ("statistics", statistics.list_of_host),
    "/hosts/<host_id>/tags": ("tags", tags.list_of_host),
    "/hosts/<host_id>/affinitylabels": ("affinity_labels", affinity_labels.list_of_host),
    "/vms": ("vms", vms.list_vms),
    "/vms/<vm_id>/statistics": ("statistics", statistics.list_of_vm),
    "/vms/<vm_id>/permissions": ("permissions", assigned_permissions.list_of_vm),
    "/vms/<vm_id>/tags": ("tags", tags.list_of_vm),
    "/vms/<vm_id>/affinitylabels": ("affinity_labels", affinity_labels.list_of_vm),
    "/vms/<vm_id>/diskattachments": ("disk_attachments", vms.list_disk_attachments),
    "/vms/<vm_id>/nics": ("nics", vms.list_nics),
    "/vms/<vm_id>/snapshots": ("snapshots", snapshots.list_of_vm),
    "/vms/<vm_id>/snapshots/<snapshot_id>/disks": ("disks", snapshots.list_disks),
    "/vms/<vm_id>/snapshots/<snapshot_id>/nics": ("nics", snapshots.list_nics),
    "/vms/<vm_id>/snapshots/<snapshot_id>/cdroms": ("cdroms", snapshots.list_cdroms),
    "/macpools": ("mac_pools", mac_pools.list_all),
    "/operatingsystems": ("operation_systems", operating_systems.list_all),
    "/affinitylabels": ("affinity_labels", affinity_labels.list_labels),
    "/affinitylabels/<label_id>/vms": ("vms", affinity_labels.list_vms),
    "/affinitylabels/<label_id>/hosts": ("hosts", affinity_labels.list_hosts),
    "/events": ("events", events.list_events),
    "/schedulingpolicies": ("scheduling_policies", policies.list_policies),
    "/schedulingpolicies/<policy_id>/filters": ("filters", policies.list_filters),
    "/schedulingpolicies/<policy_id>/weights": ("weights", policies.list_weights),
    "/schedulingpolicies/<policy_id>/balances": ("balances", policies.list_balances),
    "/schedulingpolicyunits": ("scheduling_policy_units", policies.list_units),
    "/datacenters": ("data_centers", infrastructure.list_data_centers),
    "/datacenters/<data_center_id>/clusters": ("clusters", infrastructure.list_clusters),
    "/datacenters/<data_center_id>/networks": ("networks", infrastructure.list_networks_of),
    "/networks": ("networks", infrastructure.list_networks),
    "/networks/<network_id>/vnicprofiles": ("vnic_profiles", infrastructure.list_vnic_profiles_of),
    "/vnicprofiles": ("vnic_profiles", infrastructure.list_vnic_profiles),
    "/templates": ("templates", templates.list_templates),
    "/templates/<template_id>/diskattachments": ("disk_attachments", templates.list_disk_attachments),
    "/instancetypes": ("instance_types", named.INSTANCE_TYPES.list_all),
    "/cpuprofiles": ("cpu_profiles", named.CPU_PROFILES.list_all),
    "/diskprofiles": ("disk_profiles", named.DISK_PROFILES.list_all),
    "/disks": ("disks", storage.list_disks),
    "/storagedomains": ("storage_domains", storage.list_storage_domains),
    "/storagedomains/<domain_id>/disks": ("disks", storage.list_disks_of_domain),
    "/datacenters/<data_center_id>/storagedomains": ("storage_domains", storage.list_of_data_center),
    "/jobs": ("jobs", jobs.list_jobs),
    "/jobs/<job_id>/steps": ("steps", jobs.list_steps),
    "/tags": ("tags", tags.list_tags),
    "/users": ("users", users.list_users),
    "/users/<wanted>/permissions": ("permissions", users.list_permissions),
    "/users/<wanted>/roles": ("roles", users.list_roles),
    "/users/<wanted>/tags": ("tags", users.list_tags),
    "/groups": ("groups", users.list_groups),
    "/groups/<wanted>/permissions": ("permissions", users.list_group_permissions),
    "/groups/<wanted>/roles": ("roles", users.list_group_roles),
    "/groups/<wanted>/tags": ("tags", users.list_group_tags),
    "/roles": ("roles", permissions.list_roles),
    "/roles/<role_id>/permits": ("permits", permissions.list_permits),
}

_READS: dict[str, Answering] = {
    "": infrastructure.get_api,
    "/clusters/<cluster_id>": clusters.get_cluster,
    "/clusters/<cluster_id>/affinitygroups/<group_id>": affinity_groups.get_group,
    "/clusters/<cluster_id>/permissions/<permission_id>": assigned_permissions.get_of_cluster,
    "/hosts/<host_id>": hosts.get_host,
    "/vms/<vm_id>": vms.get_vm,
    "/hosts/<host_id>/statistics/<statistic_id>": statistics.get_of_host,
    "/hosts/<host_id>/tags/<tag_id>": tags.get_of_host,
    "/vms/<vm_id>/permissions/<permission_id>": assigned_permissions.get_of_vm,
    "/vms/<vm_id>/tags/<tag_id>": tags.get_of_vm,
    "/vms/<vm_id>/statistics/<statistic_id>": statistics.get_of_vm,
    "/vms/<vm_id>/diskattachments/<disk_id>": vms.get_disk_attachment,
    "/vms/<vm_id>/nics/<nic_id>": vms.get_nic,
    "/vms/<vm_id>/snapshots/<snapshot_id>": snapshots.get_of_vm,
    "/macpools/<pool_id>": mac_pools.get,
    "/operatingsystems/<system_id>": operating_systems.get,
    "/affinitylabels/<label_id>": affinity_labels.get_label,
    "/affinitylabels/<label_id>/vms/<vm_id>": affinity_labels.get_vm,
    "/affinitylabels/<label_id>/hosts/<host_id>": affinity_labels.get_host,
    "/events/<event_id>": events.get_event,
    "/schedulingpolicies/<policy_id>": policies.get_policy,
    "/schedulingpolicies/<policy_id>/filters/<unit_id>": policies.get_filter,
    "/schedulingpolicies/<policy_id>/weights/<unit_id>": policies.get_weight,
    "/schedulingpolicies/<policy_id>/balances/<unit_id>": policies.get_balance,
    "/schedulingpolicyunits/<unit_id>": policies.get_unit,
    "/datacenters/<data_center_id>": infrastructure.get_data_center,
    "/networks/<network_id>": infrastructure.get_network,
    "/vnicprofiles/<profile_id>": infrastructure.get_vnic_profile,
    "/templates/<template_id>": templates.get_template,
    "/templates/<template_id>/diskattachments/<disk_id>": templates.get_disk_attachment,
    "/instancetypes/<entity_id>": named.INSTANCE_TYPES.get,
    "/cpuprofiles/<entity_id>": named.CPU_PROFILES.get,
    "/diskprofiles/<entity_id>": named.DISK_PROFILES.get,
    "/disks/<disk_id>": storage.get_disk,
    "/imagetransfers/<transfer_id>": transfers.get_transfer,
    "/storagedomains/<domain_id>": storage.get_storage_domain,
    "/storagedomains/<domain_id>/disks/<disk_id>": storage.get_disk_of_domain,
    "/jobs/<job_id>": jobs.get_job,
    "/jobs/<job_id>/steps/<step_id>": jobs.get_step,
    "/options/<name>": options.get_option,
    "/tags/<tag_id>": tags.get_tag,
    "/users/<wanted>": users.get_user,
    "/groups/<wanted>": users.get_group,
    "/roles/<role_id>": permissions.get_role,
    "/roles/<role_id>/permits/<permit_id>": permissions.get_permit,
}

_POSTS: dict[str, Answering] = {
    "/clusters/<cluster_id>/affinitygroups": affinity_groups.post_group,
    "/clusters/<cluster_id>/affinitygroups/<group_id>/vms": affinity_groups.post_vm,
    "/clusters/<cluster_id>/affinitygroups/<group_id>/hosts": affinity_groups.post_host,
    "/clusters/<cluster_id>/affinitygroups/<group_id>/vmlabels": affinity_groups.post_vm_label,
    "/clusters/<cluster_id>/affinitygroups/<group_id>/hostlabels": affinity_groups.post_host_label,
    "/hosts/<host_id>/activate": host_actions.activate,
    "/hosts/<host_id>/deactivate": host_actions.deactivate,
    "/hosts/<host_id>/affinitylabels": affinity_labels.post_to_host,
    "/vms/<vm_id>/start": vm_actions.start,
    "/vms/<vm_id>/stop": vm_actions.stop,
    "/vms/<vm_id>/shutdown": vm_actions.shutdown,
    "/vms/<vm_id>/suspend": vm_actions.suspend,
    "/vms/<vm_id>/reboot": vm_actions.reboot,
    "/vms/<vm_id>/reset": vm_actions.reset,
    "/vms/<vm_id>/migrate": vm_actions.migrate,
    "/vms/<vm_id>/cancelmigration": vm_actions.cancel_migration,
    "/vms/<vm_id>/affinitylabels": affinity_labels.post_to_vm,
    "/vms/<vm_id>/diskattachments": devices.post_disk_attachment,
    "/vms/<vm_id>/nics": devices.post_nic,
    "/vms/<vm_id>/permissions": assigned_permissions.post_to_vm,
    "/vms/<vm_id>/tags": tags.post_to_vm,
    "/clusters/<cluster_id>/permissions": assigned_permissions.post_to_cluster,
    "/networks/<network_id>/vnicprofiles": devices.post_vnic_profile,
    "/vms": vms.post_vm,
    "/clusters": clusters.post_cluster,
    "/templates": templates.post_template,
    "/disks": storage.post_disk,
    "/imagetransfers": transfers.post_transfer,
    "/imagetransfers/<transfer_id>/finalize": transfers.finalize,
    "/imagetransfers/<transfer_id>/cancel": transfers.cancel,
    "/jobs": jobs.post_job,
    "/jobs/<job_id>/end": jobs.end_job,
    "/jobs/<job_id>/clear": jobs.clear_job,
    "/jobs/<job_id>/steps": jobs.post_step,
    "/jobs/<job_id>/steps/<step_id>/end": jobs.end_step,
    "/clusters/<cluster_id>/upgrade": clusters.upgrade,
    "/hosts/<host_id>/upgradecheck": host_actions.upgrade_check,
    "/tags": tags.post_tag,
    "/hosts/<host_id>/tags": tags.post_to_host,
    "/affinitylabels": affinity_labels.post_label,
    "/affinitylabels/<label_id>/vms": affinity_labels.post_vm,
    "/affinitylabels/<label_id>/hosts": affinity_labels.post_host,
    "/events": events.post_event,
    "/events/undelete": events.undelete,
    "/schedulingpolicies": policies.post_policy,
    "/schedulingpolicies/<policy_id>/filters": policies.post_filter,
    "/schedulingpolicies/<policy_id>/weights": policies.post_weight,
    "/schedulingpolicies/<policy_id>/balances": policies.post_balance,
}

_PUTS: dict[str, Answering] = {
    "/clusters/<cluster_id>": clusters.put_cluster,
    "/clusters/<cluster_id>/affinitygroups/<group_id>": affinity_groups.put_group,
    "/affinitylabels/<label_id>": affinity_labels.put_label,
    "/vms/<vm_id>": vms.put_vm,
    "/hosts/<host_id>": hosts.put_host,
    "/disks/<disk_id>": storage.put_disk,
    "/tags/<tag_id>": tags.put_tag,
    "/vms/<vm_id>/diskattachments/<disk_id>": devices.put_disk_attachment,
    "/vms/<vm_id>/nics/<nic_id>": devices.put_nic,
    "/schedulingpolicies/<policy_id>": policies.put_policy,
}

_GROUP = "/clusters/<cluster_id>/affinitygroups/<group_id>"
_DELETES: dict[str, Answering] = {
    _GROUP: affinity_groups.delete_group,
    f"{_GROUP}/vms/<member_id>": affinity_groups.delete_member(Members.VMS),
    f"{_GROUP}/hosts/<member_id>": affinity_groups.delete_member(Members.HOSTS),
    f"{_GROUP}/vmlabels/<member_id>": affinity_groups.delete_member(Members.VM_LABELS),
    f"{_GROUP}/hostlabels/<member_id>": affinity_groups.delete_member(Members.HOST_LABELS),
    "/affinitylabels/<label_id>": affinity_labels.delete_label,
    "/vms/<vm_id>": vms.delete_vm,
    "/hosts/<host_id>": hosts.delete_host,
    "/templates/<template_id>": templates.delete_template,
    "/disks/<disk_id>": storage.delete_disk,
    "/storagedomains/<domain_id>/disks/<disk_id>": storage.delete_disk,
    "/affinitylabels/<label_id>/vms/<vm_id>": affinity_labels.delete_vm,
    "/affinitylabels/<label_id>/hosts/<host_id>": affinity_labels.delete_host,
    "/vms/<vm_id>/affinitylabels/<label_id>": affinity_labels.delete_vm,
    "/vms/<vm_id>/diskattachments/<disk_id>": devices.delete_disk_attachment,
    "/vms/<vm_id>/nics/<nic_id>": devices.delete_nic,
    "/vms/<vm_id>/permissions/<permission_id>": assigned_permissions.delete,
    "/clusters/<cluster_id>/permissions/<permission_id>": assigned_permissions.delete,
    "/vms/<vm_id>/tags/<tag_id>": tags.delete_of_vm,
    "/hosts/<host_id>/tags/<tag_id>": tags.delete_of_host,
    "/tags/<tag_id>": tags.delete_tag,
    "/hosts/<host_id>/affinitylabels/<label_id>": affinity_labels.delete_host,
    "/events/<event_id>": events.delete_event,
    "/schedulingpolicies/<policy_id>": policies.delete_policy,
    "/schedulingpolicies/<policy_id>/filters/<unit_id>": policies.delete_part,
    "/schedulingpolicies/<policy_id>/weights/<unit_id>": policies.delete_part,
    "/schedulingpolicies/<policy_id>/balances/<unit_id>": policies.delete_part,
    "/schedulingpolicyunits/<unit_id>": policies.delete_unit,
}


@cache
def routes() -> Map:
    """Give the map from address and method to resource; all servers share it."""
    gets = {pattern: Resource(answer, root) for pattern, root, answer in empty.collections()}
    gets |= {pattern: Resource(answer, root) for pattern, (root, answer) in _LISTS.items()}
    gets |= {pattern: Resource(answer) for pattern, answer in _READS.items()}
    rules = [_rule(pattern, resource, "GET") for pattern, resource in gets.items()]
    for method, answers in (("POST", _POSTS), ("PUT", _PUTS), ("DELETE", _DELETES)):
        rules += [_rule(pattern, Resource(answer), method) for pattern, answer in answers.items()]
    return Map(rules, strict_slashes=False, merge_slashes=False)


def _rule(pattern: str, resource: Resource, method: str) -> Rule:
    return Rule(pattern or "/", endpoint=resource, methods=[method])
