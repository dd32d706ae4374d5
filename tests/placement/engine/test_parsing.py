"""What the recording lacks, in the form of the engine's mappers: groups, labels, statistics, devices."""

import json
from urllib.request import urlopen

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree
from msgspec.structs import replace

from ovirt_placement.engine import clusters, vms, xml
from ovirt_placement.engine.clusters import failures
from ovirt_placement.engine.topology import read_details, read_snapshot, reread_vms
from ovirt_placement.engine.vms import ALL_DETAILS, USER_ROLE, USER_VM_MANAGER, Detail, Grant, owner, video_mb
from ovirt_placement.model import AffinityGroup, AffinityLabel, AffinityRule, Disk, Nic
from ovirt_simulator.http.control import Disturbance
from ovirt_simulator.http.server import Server
from tests import builders as build
from tests.builders import cluster, host, snapshot
from tests.placement.engine.simulated import owned, simulated
from tests.portal import Portal

GROUP = """
<affinity_group href="/ovirt-engine/api/clusters/c/affinitygroups/g" id="g">
  <name>g</name><broken>false</broken><enforcing>true</enforcing>
  <link href="/ovirt-engine/api/clusters/c/affinitygroups/g/vms" rel="vms"/>
  <priority>2.5</priority>
  <hosts_rule><enabled>true</enabled><enforcing>false</enforcing><positive>true</positive></hosts_rule>
  <vms_rule><enabled>false</enabled><enforcing>true</enforcing><positive>false</positive></vms_rule>
  <cluster id="c"/>
  <vms><vm href="/x" id="v1"/><vm href="/x" id="v2"/></vms><hosts><host id="h1"/></hosts>
  <vm_labels><affinity_label id="l1"/></vm_labels><host_labels/>
</affinity_group>"""


def test_a_group_is_read_with_its_members() -> None:
    content = f'<clusters><cluster id="c"><affinity_groups>{GROUP}</affinity_groups></cluster></clusters>'
    assert clusters.parse_clusters(content.encode()).groups[0] == AffinityGroup(
        id="g", name="g", cluster="c", priority=2.5,
        vms_rule=AffinityRule(enabled=False, positive=False, enforcing=True),
        hosts_rule=AffinityRule(enabled=True, positive=True, enforcing=False),
        vms=("v1", "v2"), hosts=("h1",), vm_labels=("l1",), host_labels=(),
    )  # fmt: skip


def test_labels_are_read_with_what_was_followed() -> None:
    content = b"""<affinity_labels><affinity_label id="l"><name>l</name>
      <has_implicit_affinity_group>true</has_implicit_affinity_group><link rel="vms"/>
      <vms><vm id="v"/></vms><hosts><host id="h"/></hosts></affinity_label>
      <affinity_label id="m"><name>m</name></affinity_label></affinity_labels>"""
    assert clusters.labels(content) == (
        AffinityLabel(id="l", name="l", vms=("v",), hosts=("h",), implicit=True),
        AffinityLabel(id="m", name="m", vms=(), hosts=(), implicit=False),
    )


def measured(**values: str) -> str:
    shown = (
        f"<statistic><name>{name.replace('_', '.')}</name>"
        f"<values><value><datum>{value}</datum></value></values></statistic>"
        for name, value in values.items()
    )
    return f"<statistics>{''.join(shown)}</statistics>"


UNKNOWN: dict[str, object] = {
    "cpu_percent": None,
    "memory_free_mb": None,
    "load_average_5m": None,
    "swap_free_mb": None,
}
HOSTS: dict[str, tuple[str, dict[str, object]]] = {
    "busy": (
        measured(cpu_current_user="12", cpu_current_system="3.5", cpu_current_idle="84"),
        {"cpu_percent": 15.5, "memory_free_mb": 0},
    ),
    "busier than all": (
        measured(cpu_current_user="99", cpu_current_system="9.9", cpu_current_idle="0"),
        {"cpu_percent": 100, "memory_free_mb": 0},
    ),
    "idle": (
        measured(cpu_current_user="0", cpu_current_system="0", cpu_current_idle="1.0E+2"),
        {"cpu_percent": 0, "memory_free_mb": 0},
    ),
    # What is not known is 0, never absent; a host at rest is idle, not 0 everywhere.
    "unknown": (measured(cpu_current_user="0", cpu_current_system="0", cpu_current_idle="0"), UNKNOWN),
    "memory": (
        measured(memory_free=str(5 * 1024 * 1024 + 7)), {"cpu_percent": None, "memory_free_mb": 5}
    ),
    # The engine multiplies what the host's system counts by 100, and divides it when it shows it.
    "load of the idle": (measured(cpu_current_idle="99", cpu_load_avg_5m="0.10"), {"load_average_5m": 0.1}),
    "load": (measured(cpu_current_user="60", cpu_load_avg_5m="1.2E+2"), {"load_average_5m": 120.0}),
    "no load": (measured(cpu_current_idle="1.0E+2", cpu_load_avg_5m="0"), {"load_average_5m": 0.0}),
    "unknown load": (measured(cpu_current_idle="0", cpu_load_avg_5m="0"), {"load_average_5m": None}),
    "load alone": (measured(cpu_current_idle="0", cpu_load_avg_5m="0.5"), {"load_average_5m": 0.5}),
    "load not shown": (measured(cpu_current_idle="99"), {"load_average_5m": None}),
    "swap and huge pages": (
        measured(
            cpu_current_idle="90", swap_free="3145728", hugepages_2048_free="7", hugepages_2048_total="9"
        ),
        {"swap_free_mb": 3, "free_huge_pages": {2048: 7}},
    ),
    "about to manage storage": ("<spm><status>contending</status></spm>", {"spm": True}),
    "manages no storage": ("<spm><status>none</status></spm>", {"spm": False}),
    "not measured": ("", {"free_huge_pages": {}, **UNKNOWN}),
    "a status without a word": ("<status>flying</status>", {"status": "unassigned"}),
    "before its first contact": (
        "<memory>0</memory><cpu/>", {"memory_mb": 0, "free_mb": 0, "cores": 0, "threads": None}
    ),
}  # fmt: skip


@pytest.mark.parametrize(("shown", "fields"), HOSTS.values(), ids=HOSTS)
def test_a_host_is_as_it_is_shown(shown: str, fields: dict[str, object]) -> None:
    (found,) = clusters.parse_hosts(f'<hosts><host id="h">{shown}</host></hosts>'.encode())
    assert {name: getattr(found, name) for name in fields} == fields


def vm(inner: str, affinity: str = "migratable") -> bytes:
    policy = f"<placement_policy><affinity>{affinity}</affinity></placement_policy>"
    return f'<vms><vm id="v">{policy}<memory>1048576</memory>{inner}</vm></vms>'.encode()


USED = measured(memory_installed="1000", memory_used="250", cpu_current_total="7.5")
#: Text among the statistics is no number.
TEXT = (
    "<statistics>"
    "<statistic><name>disks.usage</name><values><value><detail>[]</detail></value></values></statistic>"
    "<statistic><name>cpu.usage.history</name><values/></statistic></statistics>"
)
UNUSED: dict[str, object] = {"usage_mem_percent": None, "usage_cpu_percent": None}
MEMORY = "<memory>4294967296</memory>"
VMS: dict[str, tuple[str, dict[str, object]]] = {
    "up": (
        f'<host id="h"/><status>up</status>{USED}', {"usage_mem_percent": 25.0, "usage_cpu_percent": 7.5}
    ),
    "down": (f"<status>down</status>{USED}", UNUSED),
    "text": (f'<host id="h"/>{TEXT}', UNUSED),
    # A VM that shows no device counts as one with VGA.
    "no status and no device": ("", {"status": "unassigned", "video_mb": 16}),
    "hosted engine": ("<origin>hosted_engine</origin>", {"hosted_engine": True}),
    "managed engine": ("<origin>managed_hosted_engine</origin>", {"hosted_engine": True}),
    "of oVirt": ("<origin>ovirt</origin>", {"hosted_engine": False}),
    "of RHEV": ("<origin>rhev</origin>", {"hosted_engine": False}),
    "all is guaranteed": (MEMORY, {"memory_mb": 4096, "guaranteed_mb": 4096}),
    "an empty policy": (f"{MEMORY}<memory_policy/>", {"memory_mb": 4096, "guaranteed_mb": 4096}),
    "some is guaranteed": (
        f"{MEMORY}<memory_policy><guaranteed>1048576</guaranteed></memory_policy>",
        {"memory_mb": 4096, "guaranteed_mb": 1},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("shown", "fields"), VMS.values(), ids=VMS)
def test_a_vm_is_as_it_is_shown(shown: str, fields: dict[str, object]) -> None:
    (found,) = vms.parse_vms(vm(shown))
    assert {name: getattr(found.vm, name) for name in fields} == fields


@pytest.mark.parametrize(
    ("affinity", "migratable"), [("migratable", True), ("user_migratable", False), ("pinned", False)]
)
def test_only_what_anyone_may_migrate_is_migratable(affinity: str, migratable: bool) -> None:
    assert vms.parse_vms(vm("", affinity))[0].vm.migratable is migratable


def test_what_was_followed_stands_in_the_vm() -> None:
    read = vms.parse_vms(
        vm("""
        <custom_properties><custom_property><name>k</name><value>v</value><regexp>.*</regexp></custom_property>
        </custom_properties><instance_type id="small"/><tags><tag id="t"><name>gold</name></tag></tags>
        <nics><nic id="n"><name>nic1</name><vnic_profile id="p"/></nic>
        <nic id="m"><name>nic2</name></nic></nics>
        <disk_attachments><disk_attachment id="d"><bootable>true</bootable>
          <disk id="d"><disk_profile id="fast"/></disk></disk_attachment></disk_attachments>
        <permissions><permission id="a"><role id="def00006-0000-0000-0000-def000000006"/><user id="u"/>
        </permission><permission id="b"><role id="00000000-0000-0000-0001-000000000001"/><group id="g"/>
        </permission><permission id="c"><role id="00000000-0000-0000-0000-000000000001"/><user id="u"/>
        </permission></permissions>""")
    )[0]
    assert read.vm.custom_properties == {"k": "v"}
    assert read.vm.instance_type == "small"
    assert read.vm.tags == ("gold",)
    assert read.vm.nics == (Nic(id="n", name="nic1", vnic_profile="p"), Nic(id="m", name="nic2"))
    assert read.vm.disks == (Disk(id="d", bootable=True, profile="fast"),)
    assert read.grants == (Grant("a", USER_VM_MANAGER, "u"), Grant("b", USER_ROLE, "g"))


@pytest.mark.parametrize(
    ("kind", "system", "monitors", "hosted", "expected"),
    [
        ("vga", "rhel_9x64", 4, False, 16),
        ("bochs", "windows_10x64", 1, False, 16),
        ("cirrus", "other", 1, False, 16),
        ("qxl", "rhel_9x64", 1, False, 64 + 32),
        ("qxl", "ubuntu_18_04", 4, False, 4 * (64 + 32)),
        ("qxl", "other_linux", 2, False, 2 * (64 + 32)),
        ("qxl", "rhel_9_ppc64", 2, False, 2 * 64 + 8),
        ("qxl", "other_linux_s390x", 1, False, 64 + 8),
        ("qxl", "windows_10x64", 4, False, 64 + 64),
        ("qxl", "windows_11", 1, False, 64 + 64),
        ("qxl", "windows_2019x64", 2, False, 64 + 8),
        ("qxl", "other", 2, False, 64 + 8),
        ("qxl", "rhel_9x64", 2, True, 64 + 32),
        ("", "rhel_9x64", 1, False, 16),  # a headless VM counts as one with VGA
    ],
)
def test_memory_hangs_on_the_device_and_the_guest(
    kind: str, system: str, monitors: int, hosted: bool, expected: int
) -> None:
    shown = f"<video_type>{kind}</video_type>" if kind else ""
    display = etree.fromstring(f"<display><monitors>{monitors}</monitors>{shown}</display>")
    guest = etree.fromstring(f"<os><type>{system}</type></os>")
    assert video_mb(display, guest, hosted_engine=hosted) == expected


VM = """<vms><vm id="v"><name>v</name><cluster id="c"/><status>down</status><memory>4294967296</memory>
<memory_policy><guaranteed>1073741824</guaranteed><max>17179869184</max></memory_policy>
<cpu><mode>host_passthrough</mode><architecture>{architecture}</architecture>
<topology><sockets>2</sockets><cores>3</cores><threads>2</threads></topology></cpu>
<cpu_pinning_policy>isolate_threads</cpu_pinning_policy><io><threads>2</threads></io><os><type>rhel_9x64</type></os>
<display><monitors>1</monitors><video_type>vga</video_type></display>
<placement_policy><affinity>migratable</affinity></placement_policy></vm></vms>"""


@pytest.mark.parametrize(("architecture", "most"), [("x86_64", None), ("ppc64le", 16384)])
def test_what_the_overhead_hangs_on_is_read(architecture: str, most: int | None) -> None:
    (found,) = vms.parse_vms(VM.format(architecture=architecture).encode())
    vm = found.vm
    assert (vm.vcpus, vm.threads_per_core, vm.io_threads, vm.video_mb) == (12, 2, 2, 16)
    assert (vm.cpu_pinning, vm.cpu_sockets, vm.host_passthrough) == ("isolate_threads", 2, True)
    assert (vm.architecture, vm.max_memory_mb, vm.guaranteed_mb) == (architecture, most, 1024)


def test_failures_and_failover_hosts_are_read() -> None:
    said = {"ha_failures": "2", "ha_failover_hosts": "spare,other"}
    names = {"north": "c1", "spare": "c1", "other": "c2"}
    hosts = (host(name, cluster=of) for name, of in names.items())
    with simulated(snapshot(cluster("c1", scheduling_properties=said), cluster("c2"), *hosts)) as (*_, asked):
        read = read_snapshot(asked)
    assert {each.id: each.ha_failures for each in read.clusters} == {"c1": 2, "c2": 1}
    assert {each.name for each in read.hosts if each.failover} == {"spare"}


@pytest.mark.parametrize("said", [{}, {"ha_failures": ""}, {"ha_failures": "0"}, {"ha_failures": "two"}])
def test_one_failure_is_survived_unless_more_is_asked(said: dict[str, str]) -> None:
    assert failures(said) == 1


_DATUM = "<statistics><statistic><values><value><datum>{}</datum></value></values></statistic></statistics>"


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        *(("<memory>{}</memory>", text) for text in ("x", " ", "1.0", "1,024", "9" * 30, "9" * 9000)),
        *((_DATUM, text) for text in ("x", " ", "inf", "1e999")),
    ],
)
def test_what_is_no_number_is_no_engines_answer(shown: str, text: str) -> None:
    element = "memory" if "memory" in shown else "datum"
    with pytest.raises(xml.Unexpected, match=f"<{element}> holds"):
        clusters.parse_hosts(f"<hosts><host>{shown.format(text)}</host></hosts>".encode())


# To whom a VM belongs: the engine shows permissions misleadingly, and tags may name another.
def held(*holders: str, role: str = USER_VM_MANAGER) -> list[Grant]:
    return [Grant(f"{role}-{holder}", role, holder) for holder in holders]


@pytest.mark.parametrize(
    ("tags", "grants", "expected"),
    [
        ((), [], None),
        ((), held("alice"), "alice"),
        ((), held("bob", role=USER_ROLE), "bob"),
        ((), [*held("bob", "carol", role=USER_ROLE), *held("alice")], "alice"),
        ((), [*held("bob", role=USER_ROLE), *held("alice", "dave")], None),
        ((), held("alice", "alice"), "alice"),
        (("pk-customer-acme", "gold"), held("alice", "dave"), "acme"),
        (("pk-customer-acme", "pk-customer-emca"), held("alice"), None),
        (("customer-acme", "PK-customer-acme"), held("alice"), "alice"),
    ],
)
def test_the_owner_is_named_or_the_one_with_the_stronger_role(
    tags: tuple[str, ...], grants: list[Grant], expected: str | None
) -> None:
    assert owner(tags, grants) == expected


@given(st.lists(st.tuples(st.sampled_from([USER_ROLE, USER_VM_MANAGER, "other"]), st.sampled_from("abc"))))
def test_the_order_of_permissions_changes_nothing(held_by: list[tuple[str, str]]) -> None:
    grants = [Grant("id", role, holder) for role, holder in held_by]
    assert owner((), grants) == owner((), grants[::-1])


@pytest.mark.parametrize("number", [0, 1, 499, 500, 501, pytest.param(1203, marks=pytest.mark.system)])
def test_all_details_are_read_whatever_the_number_of_vms(number: int) -> None:
    with simulated(owned(number)) as (engine, _, connection):
        found = read_details(connection, ALL_DETAILS).vms
        expected = {vm.id: (vm.owner, vm.disks, vm.nics) for vm in engine.snapshot().vms}
        assert {vm: (one.owner, one.disks, one.nics) for vm, one in found.items()} == expected
        assert len(found) == number


@pytest.mark.parametrize(
    ("details", "requests"), [(Detail.DISKS, 2), (Detail.DISKS | Detail.NICS, 4), (Detail.OWNER, 4)]
)
def test_a_reading_of_all_costs_a_request_a_page_and_two_for_what_is_inherited_or_for_networks(
    details: Detail, requests: int
) -> None:
    with simulated(owned(600)) as (_, server, connection):
        connection.get("/vms", max=1)
        before = asked(server)
        assert len(read_details(connection, details).vms) == 600
        assert asked(server) - before == requests


def asked(server: Server) -> int:
    """How many requests were made of the engine."""
    with urlopen(f"{server.url}/simulator/requests", timeout=30) as answer:
        made: int = json.load(answer)["admin@internal"]
    return made


def test_inherited_permissions_make_no_owners_in_any_kind_of_reading() -> None:
    with simulated(owned(30)) as (engine, _, connection):
        Portal(engine).grant(USER_VM_MANAGER, "boss", cluster=build.CLUSTER)
        Portal(engine).grant(USER_ROLE, "everyone", cluster=build.CLUSTER, is_group=True)
        expected = {vm.id: vm.owner for vm in engine.snapshot().vms}
        assert expected == {vm.id: vm.owner for vm in owned(30).vms}
        assert {vm.owner for vm in read_snapshot(connection).vms} == {None}
        assert {vm.id: vm.owner for vm in read_snapshot(connection, devices=True).vms} == expected
        found = read_details(connection, Detail.OWNER).vms
        assert {vm: one.owner for vm, one in found.items()} == expected
        for number in (1, 5, 30):  # one by one, and by a search
            ids = list(expected)[:number]
            reread = reread_vms(connection, ids, Detail.OWNER)
            assert {vm.id: vm.owner for vm in reread.values()} == {one: expected[one] for one in ids}


def test_what_is_inherited_is_not_asked_for_where_nobody_uses_a_vm() -> None:
    state = owned(3)
    ownerless = replace(state, vms=tuple(replace(vm, owner=None) for vm in state.vms))
    with simulated(ownerless) as (_, server, connection):
        server.disturbances.add(Disturbance(path="/clusters", status=500, times=None))
        assert len(reread_vms(connection, ["vm0000", "vm0001"], ALL_DETAILS)) == 2


@pytest.mark.parametrize("number", [1, 5, 12, 50])
def test_what_is_read_again_has_the_details_that_are_asked_for(number: int) -> None:
    with simulated(owned(60)) as (_, _, connection):
        whole = {vm.id: vm for vm in read_snapshot(connection, devices=True).vms[:number]}
        assert reread_vms(connection, list(whole), ALL_DETAILS) == whole
        nics = reread_vms(connection, list(whole), Detail.NICS).values()
        assert all(vm.nics and not vm.disks and vm.owner is None for vm in nics)
