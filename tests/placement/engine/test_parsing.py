"""What the recording lacks, in the form of the engine's mappers: groups, labels, statistics, devices."""

import pytest
from lxml import etree

from ovirt_placement.engine import clusters, vms
from ovirt_placement.engine.clusters import failures
from ovirt_placement.engine.topology import read_snapshot
from ovirt_placement.engine.vms import USER_ROLE, USER_VM_MANAGER, Grant, video_mb
from ovirt_placement.model import AffinityGroup, AffinityLabel, AffinityRule, Disk, Nic
from tests.builders import cluster, host, snapshot
from tests.placement.engine.simulated import simulated

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
        id="g",
        name="g",
        cluster="c",
        priority=2.5,
        vms_rule=AffinityRule(enabled=False, positive=False, enforcing=True),
        hosts_rule=AffinityRule(enabled=True, positive=True, enforcing=False),
        vms=("v1", "v2"),
        hosts=("h1",),
        vm_labels=("l1",),
        host_labels=(),
    )


def test_labels_are_read_with_what_was_followed() -> None:
    content = b"""<affinity_labels><affinity_label id="l"><name>l</name>
      <has_implicit_affinity_group>true</has_implicit_affinity_group><link rel="vms"/>
      <vms><vm id="v"/></vms><hosts><host id="h"/></hosts></affinity_label>
      <affinity_label id="m"><name>m</name></affinity_label></affinity_labels>"""
    assert clusters.labels(content) == (
        AffinityLabel(id="l", name="l", vms=("v",), hosts=("h",), implicit=True),
        AffinityLabel(id="m", name="m", vms=(), hosts=(), implicit=False),
    )


def statistics(**values: str) -> str:
    return "".join(
        f"<statistic><name>{name.replace('_', '.')}</name>"
        f"<values><value><datum>{value}</datum></value></values></statistic>"
        for name, value in values.items()
    )


@pytest.mark.parametrize(
    ("values", "percent", "free_mb"),
    [
        ({"cpu_current_user": "12", "cpu_current_system": "3.5", "cpu_current_idle": "84"}, 15.5, 0),
        ({"cpu_current_user": "99", "cpu_current_system": "9.9", "cpu_current_idle": "0"}, 100, 0),
        ({"cpu_current_user": "0", "cpu_current_system": "0", "cpu_current_idle": "1.0E+2"}, 0, 0),
        # What is not known is 0, never absent; a host at rest is idle, not 0 everywhere.
        ({"cpu_current_user": "0", "cpu_current_system": "0", "cpu_current_idle": "0"}, None, None),
        ({"memory_free": str(5 * 1024 * 1024 + 7)}, None, 5),
    ],
)
def test_a_host_is_as_busy_as_its_statistics_say(
    values: dict[str, str], percent: float | None, free_mb: int | None
) -> None:
    content = f'<hosts><host id="h"><statistics>{statistics(**values)}</statistics></host></hosts>'
    host = clusters.parse_hosts(content.encode())[0]
    assert (host.cpu_percent, host.memory_free_mb) == (percent, free_mb)


@pytest.mark.parametrize(
    ("values", "average"),
    [
        ({"cpu_current_idle": "99", "cpu_load_avg_5m": "0.10"}, 0.1),
        ({"cpu_current_user": "60", "cpu_load_avg_5m": "1.2E+2"}, 120.0),
        ({"cpu_current_idle": "1.0E+2", "cpu_load_avg_5m": "0"}, 0.0),
        ({"cpu_current_idle": "0", "cpu_load_avg_5m": "0"}, None),
        ({"cpu_current_idle": "0", "cpu_load_avg_5m": "0.5"}, 0.5),
        ({"cpu_current_idle": "99"}, None),
    ],
)
def test_a_load_average_is_no_percentage_and_0_where_nothing_is_known(
    values: dict[str, str], average: float | None
) -> None:
    """The engine multiplies what the host's system counts by 100, and divides it when it shows it."""
    content = f'<hosts><host id="h"><statistics>{statistics(**values)}</statistics></host></hosts>'
    assert clusters.parse_hosts(content.encode())[0].load_average_5m == average


def vm(inner: str) -> bytes:
    policy = "<placement_policy><affinity>migratable</affinity></placement_policy>"
    return f'<vms><vm id="v">{policy}<memory>1048576</memory>{inner}</vm></vms>'.encode()


def test_a_vm_uses_what_its_statistics_say_unless_it_is_down() -> None:
    used = statistics(memory_installed="1000", memory_used="250", cpu_current_total="7.5")
    running = vms.parse_vms(vm(f'<host id="h"/><status>up</status><statistics>{used}</statistics>'))[0].vm
    assert (running.usage_mem_percent, running.usage_cpu_percent) == (25.0, 7.5)
    down = vms.parse_vms(vm(f"<status>down</status><statistics>{used}</statistics>"))[0].vm
    assert (down.usage_mem_percent, down.usage_cpu_percent) == (None, None)


def test_text_among_the_statistics_is_no_number() -> None:
    usage = (
        "<statistic><name>disks.usage</name><values><value><detail>[]</detail></value></values></statistic>"
        "<statistic><name>cpu.usage.history</name><values/></statistic>"
    )
    read = vms.parse_vms(vm(f'<host id="h"/><statistics>{usage}</statistics>'))[0].vm
    assert (read.usage_mem_percent, read.usage_cpu_percent) == (None, None)


@pytest.mark.parametrize(
    ("affinity", "migratable"), [("migratable", True), ("user_migratable", False), ("pinned", False)]
)
def test_only_what_anyone_may_migrate_is_migratable(affinity: str, migratable: bool) -> None:
    content = (
        f'<vms><vm id="v"><placement_policy><affinity>{affinity}</affinity></placement_policy></vm></vms>'
    )
    assert vms.parse_vms(content.encode())[0].vm.migratable is migratable


@pytest.mark.parametrize(
    ("origin", "hosted"),
    [("hosted_engine", True), ("managed_hosted_engine", True), ("ovirt", False), ("rhev", False)],
)
def test_the_engines_own_vm_is_known_by_its_origin(origin: str, hosted: bool) -> None:
    assert vms.parse_vms(vm(f"<origin>{origin}</origin>"))[0].vm.hosted_engine is hosted


def test_a_status_without_a_word_is_unassigned() -> None:
    assert vms.parse_vms(vm(""))[0].vm.status == "unassigned"
    assert (
        clusters.parse_hosts(b'<hosts><host id="h"><status>flying</status></host></hosts>')[0].status
        == "unassigned"
    )


def test_a_host_before_its_first_contact_has_no_processors() -> None:
    host = clusters.parse_hosts(b'<hosts><host id="h"><memory>0</memory><cpu/></host></hosts>')[0]
    assert (host.memory_mb, host.free_mb, host.cores, host.threads) == (0, 0, 0, None)


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
    ("policy", "guaranteed"),
    [
        ("", 4096),
        ("<memory_policy/>", 4096),
        ("<memory_policy><guaranteed>1048576</guaranteed></memory_policy>", 1),
    ],
)
def test_all_memory_is_guaranteed_where_the_engine_does_not_say(policy: str, guaranteed: int) -> None:
    (found,) = vms.parse_vms(vm(f"<memory>4294967296</memory>{policy}"))
    assert (found.vm.memory_mb, found.vm.guaranteed_mb) == (4096, guaranteed)


def counted(display: str, system: str, *, hosted_engine: bool = False) -> int:
    shown, guest = etree.fromstring(display), etree.fromstring(f"<os><type>{system}</type></os>")
    return video_mb(shown, guest, hosted_engine=hosted_engine)


@pytest.mark.parametrize(
    ("kind", "system", "monitors", "expected"),
    [
        ("vga", "rhel_9x64", 4, 16),
        ("bochs", "windows_10x64", 1, 16),
        ("cirrus", "other", 1, 16),
        ("qxl", "rhel_9x64", 1, 64 + 32),
        ("qxl", "ubuntu_18_04", 4, 4 * (64 + 32)),
        ("qxl", "other_linux", 2, 2 * (64 + 32)),
        ("qxl", "rhel_9_ppc64", 2, 2 * 64 + 8),
        ("qxl", "other_linux_s390x", 1, 64 + 8),
        ("qxl", "windows_10x64", 4, 64 + 64),
        ("qxl", "windows_11", 1, 64 + 64),
        ("qxl", "windows_2019x64", 2, 64 + 8),
        ("qxl", "other", 2, 64 + 8),
    ],
)
def test_memory_hangs_on_the_device_and_the_guest(
    kind: str, system: str, monitors: int, expected: int
) -> None:
    display = f"<display><monitors>{monitors}</monitors><video_type>{kind}</video_type></display>"
    assert counted(display, system) == expected


def test_the_hosted_engine_has_a_device_for_each_monitor() -> None:
    display = "<display><monitors>2</monitors><video_type>qxl</video_type></display>"
    assert counted(display, "rhel_9x64", hosted_engine=True) == 96


def test_a_headless_vm_counts_as_one_with_vga() -> None:
    assert counted("<display><monitors>1</monitors></display>", "rhel_9x64") == 16
    assert video_mb(None, None, hosted_engine=False) == 16


VM = """<vms><vm id="v"><name>v</name><cluster id="c"/><status>down</status><memory>4294967296</memory>
<memory_policy><guaranteed>1073741824</guaranteed><max>17179869184</max></memory_policy>
<cpu><architecture>{architecture}</architecture>
<topology><sockets>2</sockets><cores>3</cores><threads>2</threads></topology></cpu>
<io><threads>2</threads></io><os><type>rhel_9x64</type></os>
<display><monitors>1</monitors><video_type>vga</video_type></display>
<placement_policy><affinity>migratable</affinity></placement_policy></vm></vms>"""


@pytest.mark.parametrize(("architecture", "most"), [("x86_64", None), ("ppc64le", 16384)])
def test_what_the_overhead_hangs_on_is_read(architecture: str, most: int | None) -> None:
    (found,) = vms.parse_vms(VM.format(architecture=architecture).encode())
    vm = found.vm
    assert (vm.vcpus, vm.threads_per_core, vm.io_threads, vm.video_mb) == (12, 2, 2, 16)
    assert (vm.architecture, vm.max_memory_mb, vm.guaranteed_mb) == (architecture, most, 1024)


def test_swap_huge_pages_and_who_manages_storage_are_read_of_hosts() -> None:
    entry = "<statistic><name>{}</name><values><value><datum>{}</datum></value></values></statistic>"
    data = {"cpu.current.idle": 90, "swap.free": 3 << 20, "hugepages.2048.free": 7, "hugepages.2048.total": 9}
    statistics = "".join(entry.format(name, value) for name, value in data.items())
    (found,) = clusters.parse_hosts(
        f'<hosts><host id="h"><spm><status>contending</status></spm><statistics>{statistics}</statistics>'
        "</host></hosts>".encode()
    )
    assert (found.swap_free_mb, found.free_huge_pages, found.spm) == (3, {2048: 7}, True)
    (idle,) = clusters.parse_hosts(b'<hosts><host id="h"><spm><status>none</status></spm></host></hosts>')
    assert (idle.swap_free_mb, idle.free_huge_pages, idle.spm) == (None, {}, False)


def test_failures_and_failover_hosts_are_read() -> None:
    said = {"ha_failures": "2", "ha_failover_hosts": "spare,other"}
    state = snapshot(
        cluster("c1", scheduling_properties=said),
        cluster("c2"),
        host("h1", name="north", cluster="c1"),
        host("h2", name="spare", cluster="c1"),
        host("h3", name="other", cluster="c2"),
    )
    with simulated(state) as (_, _, connection):
        read = read_snapshot(connection)
    assert {each.id: each.ha_failures for each in read.clusters} == {"c1": 2, "c2": 1}
    assert {each.name: each.failover for each in read.hosts} == {
        "north": False,
        "spare": True,
        "other": False,
    }


@pytest.mark.parametrize("said", [{}, {"ha_failures": ""}, {"ha_failures": "0"}, {"ha_failures": "two"}])
def test_one_failure_is_survived_unless_more_is_asked(said: dict[str, str]) -> None:
    assert failures(said) == 1
