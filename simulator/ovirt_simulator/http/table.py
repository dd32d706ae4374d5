"""The table of resources: what each address of the API below /ovirt-engine/api is, and what answers it.

A list is one of entities at `ADDRESS/<id>`, if `get` stands there; actions are POSTs to `ADDRESS/NAME`. What
an engine has besides, and the simulator has not, is refused with 501: collections that no line names, and
methods that a line does not have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, TypeAlias

import msgspec
from werkzeug.routing import Map, Rule

from ovirt_simulator.core.affinity_commands import Members
from ovirt_simulator.http.resources import (
    access,
    affinity_groups,
    affinity_labels,
    clusters,
    events,
    host_actions,
    hosts,
    infrastructure,
    jobs,
    options,
    policies,
    statistics,
    tags,
    vm_actions,
    vms,
)

Answering: TypeAlias = "Callable[..., Any]"


class Answer(msgspec.Struct, frozen=True):
    """What answers one method of an address: with its root element, its items, or a whole response."""

    answer: Answering
    #: The root element around the items of a list; None for what is no list.
    root: str | None = None


class Resource(msgspec.Struct, frozen=True, kw_only=True):
    """A collection, with its entities and what can be done to them."""

    address: str
    #: The root element of the list, where it is not the last step of the address.
    root: str = ""
    #: What its entities are called in addresses: `<vm_id>`.
    id: str = "entity_id"
    list: Answering | None = None
    post: Answering | None = None
    get: Answering | None = None
    put: Answering | None = None
    delete: Answering | None = None
    actions: Mapping[str, Answering] = {}

    def answers(self) -> Iterator[tuple[str, str, Answer]]:
        """Give method, address pattern and what answers it."""
        entity = f"{self.address}/<{self.id}>"
        if self.list is not None:
            yield "GET", self.address, Answer(self.list, self.root or self.address.rpartition("/")[2])
        for method, address, answer in (
            ("POST", self.address, self.post),
            ("GET", entity, self.get),
            ("PUT", entity, self.put),
            ("DELETE", entity, self.delete),
        ):
            if answer is not None:
                yield method, address, Answer(answer)
        for name, action in self.actions.items():
            yield "POST", f"{entity}/{name}", Answer(action)


_GROUP = "/clusters/<cluster_id>/affinitygroups/<group_id>"
_LABEL = "/affinitylabels/<label_id>"
_POLICY = "/schedulingpolicies/<policy_id>"

RESOURCES = (
    Resource(address="/datacenters", root="data_centers", id="data_center_id",
             list=infrastructure.list_data_centers, get=infrastructure.get_data_center),
    Resource(address="/datacenters/<data_center_id>/clusters", list=infrastructure.list_clusters),
    Resource(address="/datacenters/<data_center_id>/networks", list=infrastructure.list_networks),
    Resource(address="/networks", id="network_id",
             list=infrastructure.list_networks, get=infrastructure.get_network),
    Resource(address="/networks/<network_id>/vnicprofiles", root="vnic_profiles",
             list=infrastructure.list_vnic_profiles_of),
    Resource(address="/vnicprofiles", root="vnic_profiles", id="profile_id",
             list=infrastructure.list_vnic_profiles, get=infrastructure.get_vnic_profile),
    Resource(address="/clusters", id="cluster_id",
             list=clusters.list_clusters, post=clusters.post_cluster,
             delete=clusters.delete_cluster, get=clusters.get_cluster, put=clusters.put_cluster,
             actions={"upgrade": clusters.upgrade}),
    Resource(address="/clusters/<cluster_id>/networks", list=infrastructure.list_networks),
    Resource(address="/clusters/<cluster_id>/permissions", list=access.list_of_cluster),
    Resource(address="/clusters/<cluster_id>/affinitygroups", root="affinity_groups", id="group_id",
             list=affinity_groups.list_groups, post=affinity_groups.post_group,
             get=affinity_groups.get_group, put=affinity_groups.put_group,
             delete=affinity_groups.delete_group),
    Resource(address=f"{_GROUP}/vms", id="member_id",
             list=affinity_groups.list_vms, post=affinity_groups.post_vm,
             delete=affinity_groups.delete_member(Members.VMS)),
    Resource(address=f"{_GROUP}/hosts", id="member_id",
             list=affinity_groups.list_hosts, post=affinity_groups.post_host,
             delete=affinity_groups.delete_member(Members.HOSTS)),
    Resource(address=f"{_GROUP}/vmlabels", root="affinity_labels", id="member_id",
             list=affinity_groups.list_vm_labels, post=affinity_groups.post_vm_label,
             delete=affinity_groups.delete_member(Members.VM_LABELS)),
    Resource(address=f"{_GROUP}/hostlabels", root="affinity_labels", id="member_id",
             list=affinity_groups.list_host_labels, post=affinity_groups.post_host_label,
             delete=affinity_groups.delete_member(Members.HOST_LABELS)),
    Resource(address="/hosts", id="host_id", list=hosts.list_hosts, get=hosts.get_host,
             actions={
                 "activate": host_actions.activate,
                 "deactivate": host_actions.deactivate,
                 "upgradecheck": host_actions.upgrade_check,
                 "upgrade": host_actions.upgrade,
             }),
    Resource(address="/hosts/<host_id>/statistics", id="statistic_id",
             list=statistics.list_of_host, get=statistics.get_of_host),
    Resource(address="/hosts/<host_id>/tags", list=tags.list_of_host),
    Resource(address="/hosts/<host_id>/affinitylabels", root="affinity_labels", id="label_id",
             list=affinity_labels.list_of_host, post=affinity_labels.post_to_host,
             get=affinity_labels.get_label, delete=affinity_labels.delete_host),
    Resource(address="/vms", id="vm_id", list=vms.list_vms, get=vms.get_vm, put=vms.put_vm,
             post=vms.post_vm, delete=vms.delete_vm,
             actions={
                 "start": vm_actions.start,
                 "stop": vm_actions.stop,
                 "shutdown": vm_actions.shutdown,
                 "suspend": vm_actions.suspend,
                 "reboot": vm_actions.reboot,
                 "reset": vm_actions.reset,
                 "migrate": vm_actions.migrate,
                 "cancelmigration": vm_actions.cancel_migration,
             }),
    Resource(address="/vms/<vm_id>/statistics", id="statistic_id",
             list=statistics.list_of_vm, get=statistics.get_of_vm),
    Resource(address="/vms/<vm_id>/permissions", list=access.list_of_vm, post=access.post_to_vm),
    Resource(address="/vms/<vm_id>/tags", id="tag_id",
             list=tags.list_of_vm, post=tags.post_to_vm, delete=tags.delete_of_vm),
    Resource(address="/vms/<vm_id>/affinitylabels", root="affinity_labels", id="label_id",
             list=affinity_labels.list_of_vm, post=affinity_labels.post_to_vm,
             get=affinity_labels.get_label, delete=affinity_labels.delete_vm),
    Resource(address="/vms/<vm_id>/diskattachments", root="disk_attachments", id="disk_id",
             list=vms.list_disk_attachments, get=vms.get_disk_attachment,
             post=vms.post_disk_attachment, delete=vms.delete_disk_attachment),
    Resource(address="/vms/<vm_id>/nics", id="nic_id", list=vms.list_nics, get=vms.get_nic,
             post=vms.post_nic, delete=vms.delete_nic),
    Resource(address="/disks", id="disk_id", get=vms.get_disk),
    Resource(address="/affinitylabels", root="affinity_labels", id="label_id",
             list=affinity_labels.list_labels, post=affinity_labels.post_label,
             get=affinity_labels.get_label, put=affinity_labels.put_label,
             delete=affinity_labels.delete_label),
    Resource(address=f"{_LABEL}/vms", id="vm_id",
             list=affinity_labels.list_vms, post=affinity_labels.post_vm,
             get=affinity_labels.get_vm, delete=affinity_labels.delete_vm),
    Resource(address=f"{_LABEL}/hosts", id="host_id",
             list=affinity_labels.list_hosts, post=affinity_labels.post_host,
             get=affinity_labels.get_host, delete=affinity_labels.delete_host),
    Resource(address="/schedulingpolicies", root="scheduling_policies", id="policy_id",
             list=policies.list_policies, post=policies.post_policy, get=policies.get_policy,
             put=policies.put_policy, delete=policies.delete_policy),
    Resource(address=f"{_POLICY}/filters", id="unit_id",
             list=policies.list_filters, post=policies.post_filter,
             get=policies.get_filter, delete=policies.delete_part),
    Resource(address=f"{_POLICY}/weights", id="unit_id",
             list=policies.list_weights, post=policies.post_weight,
             get=policies.get_weight, delete=policies.delete_part),
    Resource(address=f"{_POLICY}/balances", id="unit_id",
             list=policies.list_balances, post=policies.post_balance,
             get=policies.get_balance, delete=policies.delete_part),
    Resource(address="/schedulingpolicyunits", root="scheduling_policy_units", id="unit_id",
             list=policies.list_units, get=policies.get_unit, delete=policies.delete_unit),
    Resource(address="/tags", id="tag_id", list=tags.list_tags, post=tags.post_tag, get=tags.get_tag),
    Resource(address="/users", id="user", list=access.list_users, get=access.get_user),
    Resource(address="/users/<user>/permissions", list=access.list_of_user),
    Resource(address="/users/<user>/roles", list=access.list_roles_of_user),
    Resource(address="/permissions", list=access.list_of_all),
    Resource(address="/roles", id="role_id", list=access.list_roles, get=access.get_role),
    Resource(address="/roles/<role_id>/permits", list=access.list_permits),
    Resource(address="/events", id="event_id",
             list=events.list_events, post=events.post_event, get=events.get_event),
    Resource(address="/jobs", id="job_id", list=jobs.list_jobs, get=jobs.get_job),
    Resource(address="/options", id="name", get=options.get_option),
)  # fmt: skip


@cache
def routes() -> Map:
    """Give the map from address and method to what answers it; all servers share it."""
    found = {("GET", "/"): Answer(infrastructure.get_api)}
    for resource in RESOURCES:
        found |= {(method, address): answer for method, address, answer in resource.answers()}
    rules = [Rule(address, endpoint=answer, methods=[method]) for (method, address), answer in found.items()]
    return Map(rules, strict_slashes=False, merge_slashes=False)
