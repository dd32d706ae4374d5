"""Video memory by what the engine shows of a display, against the engine's own table."""

from __future__ import annotations

import pytest
from lxml import etree

from ovirt_placement.engine.parsing import hosts, vms
from ovirt_placement.engine.parsing.vms import video_mb


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
    (found,) = vms.read(VM.format(architecture=architecture).encode())
    vm = found.vm
    assert (vm.vcpus, vm.threads_per_core, vm.io_threads, vm.video_mb) == (12, 2, 2, 16)
    assert (vm.architecture, vm.max_memory_mb, vm.guaranteed_mb) == (architecture, most, 1024)


def test_swap_huge_pages_and_who_manages_storage_are_read_of_hosts() -> None:
    entry = "<statistic><name>{}</name><values><value><datum>{}</datum></value></values></statistic>"
    data = {"cpu.current.idle": 90, "swap.free": 3 << 20, "hugepages.2048.free": 7, "hugepages.2048.total": 9}
    statistics = "".join(entry.format(name, value) for name, value in data.items())
    (found,) = hosts.read(
        f'<hosts><host id="h"><spm><status>contending</status></spm><statistics>{statistics}</statistics>'
        "</host></hosts>".encode()
    )
    assert (found.swap_free_mb, found.free_huge_pages, found.spm) == (3, {2048: 7}, True)
    (idle,) = hosts.read(b'<hosts><host id="h"><spm><status>none</status></spm></host></hosts>')
    assert (idle.swap_free_mb, idle.free_huge_pages, idle.spm) == (None, {}, False)
