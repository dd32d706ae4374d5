"""Affinity groups and labels are added, changed and removed, and refused, as the engine's commands do it."""

import pytest
from ovirtsdk4 import Connection, Error, NotFoundError, types
from ovirtsdk4.services import AffinityGroupsService, SystemService

from ovirt_simulator.core.engine import Engine
from tests.simulator.http.plain import Api

PATH = "clusters/cluster1/affinitygroups"


@pytest.fixture
def groups(system: SystemService) -> AffinityGroupsService:
    return system.clusters_service().cluster_service("cluster1").affinity_groups_service()


def rule(
    enabled: bool = True, *, positive: bool | None = None, enforcing: bool = False
) -> types.AffinityRule:
    return types.AffinityRule(enabled=enabled, positive=positive, enforcing=enforcing)


HARD_TOGETHER, OFF = (True, True, True), (False, False, False)


def said(rule: types.AffinityRule) -> tuple[bool, bool, bool]:
    return bool(rule.enabled), bool(rule.positive), bool(rule.enforcing)


def ids(found: list[types.Identified]) -> list[str]:
    return [one.id for one in found]


def vms(*ids: str) -> list[types.Vm]:
    return [types.Vm(id=vm_id) for vm_id in ids]


def test_added_changed_and_removed(groups: AffinityGroupsService, system: SystemService) -> None:
    added = groups.add(
        types.AffinityGroup(
            name="new",
            description="together",
            priority=3.123456789,
            vms_rule=rule(positive=True, enforcing=True),
            hosts_rule=rule(positive=False),
            vms=vms("spare", "manual"),
            hosts=[types.Host(id="host1")],
            vm_labels=[types.AffinityLabel(id="empty")],
        )
    )
    fields = (added.name, added.description, added.priority, added.cluster.id)
    assert fields == ("new", "together", 3.1234568, "cluster1")
    assert (said(added.vms_rule), said(added.hosts_rule)) == (HARD_TOGETHER, (True, False, False))
    assert ids(added.vms) == ["spare", "manual"]
    service = groups.group_service(added.id)
    assert service.get().vm_labels[0].id == "empty"

    changed = service.update(types.AffinityGroup(name="newer", vms=vms("spare")))
    assert (changed.name, changed.priority, ids(changed.vms)) == ("newer", 3.1234568, ["spare"])
    assert ids(changed.hosts) == ["host1"], "a list that is absent stays"
    assert said(changed.vms_rule) == HARD_TOGETHER
    assert ids(service.update(types.AffinityGroup(vms=[])).vms) == []

    service.remove()
    assert added.id not in ids(groups.list())
    assert [event.code for event in system.events_service().list()] == [10354, 10352, 10352, 10350]


def test_a_new_groups_defaults(groups: AffinityGroupsService) -> None:
    group = groups.add(types.AffinityGroup(name="plain"))
    assert (said(group.vms_rule), said(group.hosts_rule)) == (OFF, OFF)
    assert (group.enforcing, group.positive, group.priority) == (False, None, 1.0)


def test_legacy_attributes_stand_in_for_the_rule(groups: AffinityGroupsService) -> None:
    group = groups.add(types.AffinityGroup(name="old", positive=True, enforcing=True))
    assert said(group.vms_rule) == HARD_TOGETHER
    service = groups.group_service(group.id)
    assert said(service.update(types.AffinityGroup(enforcing=False)).vms_rule) == (True, True, False)
    both = types.AffinityGroup(positive=False, vms_rule=rule(positive=True, enforcing=True))
    assert said(service.update(both).vms_rule) == HARD_TOGETHER, "next to a rule they are ignored"


def test_enabling_without_a_polarity_changes_nothing(groups: AffinityGroupsService) -> None:
    group = groups.add(types.AffinityGroup(name="half", vms_rule=types.AffinityRule(enabled=True)))
    assert group.vms_rule.enabled is False
    service = groups.group_service(group.id)
    assert service.update(types.AffinityGroup(vms_rule=rule(positive=False))).vms_rule.enabled is True
    disabled = service.update(types.AffinityGroup(vms_rule=rule(False, positive=True)))
    found = (disabled.vms_rule.enabled, disabled.vms_rule.positive, disabled.positive)
    assert found == (False, False, None)


def test_members_but_vms_are_answered_with_an_action(engine: Engine, api: Api) -> None:
    vm = api(f"{PATH}/together/vms", "POST", '<vm id="spare"/>')
    assert (vm.status, vm.xml.tag, vm.xml.get("id")) == (200, "vm", "spare")
    for members, body in (
        ("hosts", '<host id="host1"/>'),
        ("hosts", "<host><name>beta</name></host>"),
        ("vmlabels", '<affinity_label id="empty"/>'),
        ("hostlabels", '<affinity_label id="empty"/>'),
    ):
        reply = api(f"{PATH}/together/{members}", "POST", body)
        found = (reply.status, reply.xml.tag, reply.xml.findtext("status"))
        assert found == (200, "action", "complete"), members
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


def test_a_labels_life(sdk: Connection, system: SystemService) -> None:
    labels = system.affinity_labels_service()
    service = labels.label_service(labels.add(types.AffinityLabel(name="gpu")).id)
    vms, hosts = service.vms_service(), service.hosts_service()
    assert (vms.add(types.Vm(id="web1")).id, hosts.add(types.Host(id="host1")).id) == ("web1", "host1")
    assert ids(sdk.follow_link(service.get().vms)) == ["web1"]
    assert vms.vm_service("web1").get().id == "web1"
    with pytest.raises(Error) as caught:
        service.remove()
    assert caught.value.code == 409
    vms.vm_service("web1").remove()
    hosts.host_service("host1").remove()
    with pytest.raises(NotFoundError):
        vms.vm_service("web1").remove()
    assert service.update(types.AffinityLabel(name="fpga")).name == "fpga"
    service.remove()
    assert {each.name for each in labels.list()} == {"backend", "empty"}
