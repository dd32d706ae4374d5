"""Affinity groups and their members. Any cluster's address serves for a group, but to list and to add."""

from __future__ import annotations

from collections.abc import Callable

from werkzeug import Response

from ovirt_placement.model import AffinityRule
from ovirt_simulator.core.affinity_commands import AffinityGroupEdit, Members
from ovirt_simulator.core.entities import AffinityGroup
from ovirt_simulator.http import answers, bodies
from ovirt_simulator.http.answers import incomplete
from ovirt_simulator.http.bodies import Body
from ovirt_simulator.http.call import Call
from ovirt_simulator.http.links import Links
from ovirt_simulator.http.render import affinity as render
from ovirt_simulator.http.render.host import outline as host_outline
from ovirt_simulator.http.render.vm import outline as vm_outline
from ovirt_simulator.http.resources.actions import done
from ovirt_simulator.http.resources.find import host_id, present
from ovirt_simulator.http.users import Permit

#: What a new group's rules are when the body says nothing.
_DISABLED = AffinityRule(enabled=False, positive=False, enforcing=False)


def list_groups(call: Call, cluster_id: str) -> list[str]:
    call.need_admin()
    return [render_group(call, group) for group in call.queries.affinity_groups(cluster_id)]


def get_group(call: Call, cluster_id: str, group_id: str) -> str:
    return render_group(call, _group(call, group_id))


def render_group(call: Call, group: AffinityGroup, links: Links | None = None) -> str:
    if links is None:
        links = call.links("clusters", group.cluster, "affinitygroups", group.id)
    return render.affinity_group(group, links, broken=call.queries.is_broken(group))


def post_group(call: Call, cluster_id: str) -> Response:
    body = call.body("affinity_group")
    if not body.text("name"):
        raise incomplete("AffinityGroup", "name")
    call.need(Permit.MANIPULATE_AFFINITY_GROUPS)
    edit = _edit(call, body, _DISABLED, _DISABLED)
    group = call.engine.affinity_groups.add(cluster_id, edit, caller=call.caller)
    return answers.document(_populated(call, group), 201)


def put_group(call: Call, cluster_id: str, group_id: str) -> Response:
    present_group = _group(call, group_id)
    body = call.body("affinity_group")
    call.need(Permit.MANIPULATE_AFFINITY_GROUPS)
    edit = _edit(call, body, present_group.vms_rule, present_group.hosts_rule)
    group = call.engine.affinity_groups.edit(group_id, edit, caller=call.caller)
    return answers.document(_populated(call, group))


def delete_group(call: Call, cluster_id: str, group_id: str) -> Response:
    _group(call, group_id)
    call.need(Permit.MANIPULATE_AFFINITY_GROUPS)
    call.engine.affinity_groups.remove(group_id, caller=call.caller)
    return done()


def _group(call: Call, group_id: str) -> AffinityGroup:
    """Give a group.

    The query for an unknown one ends in a null pointer, which has no text on Java 11, and so in 404. On
    Java 14 and later it has one, with which an engine answers 400.
    """
    call.need_admin()
    return present(call.queries.affinity_group(group_id))


def _populated(call: Call, group: AffinityGroup) -> str:
    return render_group(call, group, call.plain_links("clusters", group.cluster, "affinitygroups", group.id))


def _edit(call: Call, body: Body, vms_rule: AffinityRule, hosts_rule: AffinityRule) -> AffinityGroupEdit:
    return AffinityGroupEdit(
        name=body.text("name"),
        description=body.text("description"),
        priority=body.number("priority"),
        cluster=body.child_id("cluster"),
        vms_rule=bodies.rule(body, "vms_rule", vms_rule, legacy=True),
        hosts_rule=bodies.rule(body, "hosts_rule", hosts_rule),
        vms=body.ids("vms", "vm"),
        hosts=body.ids("hosts", "host"),
        vm_labels=body.ids("vm_labels", "affinity_label"),
        host_labels=body.ids("host_labels", "affinity_label"),
    )


def list_vms(call: Call, cluster_id: str, group_id: str) -> list[str]:
    vms = (present(call.queries.vm(vm_id)) for vm_id in _group(call, group_id).vms)
    return [vm_outline(vm.id, call.links("vms", vm.id), name=vm.name) for vm in vms]


def list_hosts(call: Call, cluster_id: str, group_id: str) -> list[str]:
    hosts = (present(call.queries.host(host_id)) for host_id in _group(call, group_id).hosts)
    return [host_outline(host.id, call.links("hosts", host.id), name=host.name) for host in hosts]


def list_vm_labels(call: Call, cluster_id: str, group_id: str) -> list[str]:
    return _labels(call, _group(call, group_id).vm_labels)


def list_host_labels(call: Call, cluster_id: str, group_id: str) -> list[str]:
    return _labels(call, _group(call, group_id).host_labels)


def _labels(call: Call, label_ids: tuple[str, ...]) -> list[str]:
    labels = (present(call.queries.affinity_label(label_id)) for label_id in label_ids)
    return [render.affinity_label(label, call.links("affinitylabels", label.id)) for label in labels]


def post_vm(call: Call, cluster_id: str, group_id: str) -> Response:
    """Add a VM; alone among the members it is echoed, not answered with an action."""
    vm_id = call.body("vm").id
    if vm_id is None:
        raise incomplete("Vm", "id")
    _add(call, group_id, Members.VMS, vm_id)
    return answers.document(vm_outline(vm_id, call.plain_links("vms", vm_id)))


def post_host(call: Call, cluster_id: str, group_id: str) -> Response:
    found = host_id(call, call.body("host"))
    if found is None:
        raise incomplete("Host", "id|name")
    _add(call, group_id, Members.HOSTS, found)
    return done()


def post_vm_label(call: Call, cluster_id: str, group_id: str) -> Response:
    return _post_label(call, group_id, Members.VM_LABELS)


def post_host_label(call: Call, cluster_id: str, group_id: str) -> Response:
    return _post_label(call, group_id, Members.HOST_LABELS)


def _post_label(call: Call, group_id: str, members: Members) -> Response:
    label_id = call.body("affinity_label").id
    if label_id is None:
        raise incomplete("AffinityLabel", "id")
    _add(call, group_id, members, label_id)
    return done()


def _add(call: Call, group_id: str, members: Members, member_id: str) -> None:
    call.need(Permit.MANIPULATE_AFFINITY_GROUPS)
    call.engine.affinity_groups.add_member(group_id, members, member_id, caller=call.caller)


def delete_member(members: Members) -> Callable[..., Response]:
    """Make the resource that takes a member out of one of a group's lists."""

    def delete(call: Call, cluster_id: str, group_id: str, member_id: str) -> Response:
        call.need(Permit.MANIPULATE_AFFINITY_GROUPS)
        call.engine.affinity_groups.remove_member(group_id, members, member_id, caller=call.caller)
        return done()

    return delete
