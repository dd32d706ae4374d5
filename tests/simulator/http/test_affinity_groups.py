"""Affinity groups and labels are added, changed and removed, and refused, as the engine's commands do it."""

import pytest
from ovirtsdk4 import Connection, Error, NotFoundError, types
from ovirtsdk4.services import AffinityGroupsService, SystemService

from ovirt_simulator.core.engine import Engine
from tests.simulator.http.plain import Api, Reply

PATH = "clusters/cluster1/affinitygroups"


@pytest.fixture
def groups(system: SystemService) -> AffinityGroupsService:
    return system.clusters_service().cluster_service("cluster1").affinity_groups_service()


def rule(
    *, enabled: bool = True, positive: bool | None = None, enforcing: bool | None = None
) -> types.AffinityRule:
    return types.AffinityRule(enabled=enabled, positive=positive, enforcing=enforcing)


def vms(*ids: str) -> list[types.Vm]:
    return [types.Vm(id=vm_id) for vm_id in ids]


def test_added_changed_and_removed(groups: AffinityGroupsService, system: SystemService) -> None:
    added = groups.add(
        types.AffinityGroup(
            name="new",
            description="together",
            priority=3.123456789,
            vms_rule=rule(positive=True, enforcing=True),
            hosts_rule=rule(positive=False, enforcing=False),
            vms=vms("spare", "manual"),
            hosts=[types.Host(id="host1")],
            vm_labels=[types.AffinityLabel(id="empty")],
        )
    )
    assert (added.name, added.description, added.priority, added.cluster.id) == (
        "new",
        "together",
        3.1234568,
        "cluster1",
    )
    assert (added.vms_rule.positive, added.hosts_rule.positive, added.hosts_rule.enabled) == (
        True,
        False,
        True,
    )
    assert [vm.id for vm in added.vms] == ["spare", "manual"]
    service = groups.group_service(added.id)
    assert service.get().vm_labels[0].id == "empty"

    changed = service.update(types.AffinityGroup(name="newer", vms=vms("spare")))
    assert (changed.name, changed.priority, [vm.id for vm in changed.vms]) == ("newer", 3.1234568, ["spare"])
    assert [host.id for host in changed.hosts] == ["host1"], "a list that is absent stays"
    assert changed.vms_rule.positive is True
    assert list(service.update(types.AffinityGroup(vms=[])).vms) == []

    service.remove()
    assert added.id not in {group.id for group in groups.list()}
    codes = [event.code for event in system.events_service().list()]
    assert codes == [10354, 10352, 10352, 10350]


def test_a_new_groups_defaults(groups: AffinityGroupsService) -> None:
    group = groups.add(types.AffinityGroup(name="plain"))
    assert (group.vms_rule.enabled, group.hosts_rule.enabled, group.enforcing, group.priority) == (
        False,
        False,
        False,
        1.0,
    )
    assert group.positive is None


def test_legacy_attributes_stand_in_for_the_rule(groups: AffinityGroupsService) -> None:
    group = groups.add(types.AffinityGroup(name="old", positive=True, enforcing=True))
    assert (group.vms_rule.enabled, group.vms_rule.positive, group.vms_rule.enforcing) == (True, True, True)
    changed = groups.group_service(group.id).update(types.AffinityGroup(enforcing=False))
    assert (changed.vms_rule.positive, changed.vms_rule.enforcing) == (True, False)
    both = groups.group_service(group.id).update(
        types.AffinityGroup(positive=False, vms_rule=rule(positive=True, enforcing=True))
    )
    assert (both.vms_rule.positive, both.vms_rule.enforcing) == (True, True), (
        "next to a rule they are ignored"
    )


def test_enabling_without_a_polarity_changes_nothing(groups: AffinityGroupsService) -> None:
    group = groups.add(types.AffinityGroup(name="half", vms_rule=rule(enabled=True)))
    assert group.vms_rule.enabled is False
    service = groups.group_service(group.id)
    assert service.update(types.AffinityGroup(vms_rule=rule(positive=False))).vms_rule.enabled is True
    disabled = service.update(types.AffinityGroup(vms_rule=rule(enabled=False, positive=True)))
    assert (disabled.vms_rule.enabled, disabled.vms_rule.positive, disabled.positive) == (False, False, None)


def test_members_but_vms_are_answered_with_an_action(engine: Engine, api: Api) -> None:
    def post(members: str, body: str) -> Reply:
        return api(f"{PATH}/together/{members}", "POST", body)

    vm = post("vms", '<vm id="spare"/>')
    assert (vm.status, vm.xml.tag, vm.xml.get("id")) == (200, "vm", "spare")
    for members, body in (
        ("hosts", '<host id="host1"/>'),
        ("hosts", "<host><name>beta</name></host>"),
        ("vmlabels", '<affinity_label id="empty"/>'),
        ("hostlabels", '<affinity_label id="empty"/>'),
    ):
        reply = post(members, body)
        assert (reply.status, reply.xml.tag, reply.xml.findtext("status")) == (200, "action", "complete"), (
            members
        )
    group = engine.queries.state.groups.get("together")
    assert (group.hosts, group.vm_labels, group.host_labels) == (("host1", "host2"), ("empty",), ("empty",))
    for members in ("vms/spare", "hosts/host1", "vmlabels/empty", "hostlabels/empty"):
        reply = api(f"{PATH}/together/{members}", "DELETE")
        assert (reply.status, reply.xml.tag) == (200, "action"), members
    group = engine.queries.state.groups.get("together")
    assert (group.vms, group.hosts, group.vm_labels) == (("web1", "web2"), ("host2",), ())


def test_a_group_that_is_gone_is_400(api: Api) -> None:
    """As on Java 17, in whose null pointers there is a text."""
    for method in ("GET", "PUT", "DELETE"):
        reply = api(f"{PATH}/none", method, "<affinity_group/>")
        assert (reply.status, reply.xml.findtext("reason")) == (400, "Operation Failed")
        assert reply.xml.findtext("detail", "").endswith('because "ag" is null')
    member = api(f"{PATH}/none/vms/web1", "DELETE")
    assert (member.status, member.xml.tag) == (400, "fault")


def test_adding_answers_201_and_removing_an_action(api: Api) -> None:
    added = api(f"{PATH}", "POST", "<affinity_group><name>n</name></affinity_group>")
    assert added.status == 201
    removed = api(f"{PATH}/{added.xml.get('id')}", "DELETE")
    assert (removed.status, removed.xml.tag, removed.xml.findtext("status")) == (200, "action", "complete")


def test_a_labels_life(sdk: Connection, system: SystemService) -> None:
    labels = system.affinity_labels_service()
    label = labels.add(types.AffinityLabel(name="gpu"))
    service = labels.label_service(label.id)
    assert service.vms_service().add(types.Vm(id="web1")).id == "web1"
    assert service.hosts_service().add(types.Host(id="host1")).id == "host1"
    assert [vm.id for vm in sdk.follow_link(service.get().vms)] == ["web1"]
    assert service.vms_service().vm_service("web1").get().id == "web1"

    with pytest.raises(Error) as caught:
        service.remove()
    assert caught.value.code == 409
    service.vms_service().vm_service("web1").remove()
    service.hosts_service().host_service("host1").remove()
    with pytest.raises(NotFoundError):
        service.vms_service().vm_service("web1").remove()
    assert service.update(types.AffinityLabel(name="fpga")).name == "fpga"
    service.remove()
    assert {each.name for each in labels.list()} == {"backend", "empty"}
