"""Modules of ovirt.ovirt: each changes what it says in check mode, and the next time nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.clients.ansible_modules import impatient, run
from tests.integration.ansible_playbook import simulated_engine
from tests.simulator.http.world import WORLD

pytestmark = pytest.mark.nightly

#: Options of a VM that is down, besides its name; each but the first is given to the VM as the others left
#: it.
OF_A_VM: list[dict[str, Any]] = [
    {"memory": "2GiB", "cpu_cores": 2, "cpu_sockets": 2, "cpu_shares": 1024, "type": "server"},
    {"high_availability": True, "high_availability_priority": 50},
    {"delete_protected": True},
    {"stateless": True},
    {"boot_menu": True, "bios_type": "q35_ovmf"},
    {"usb_support": True, "serial_console": True, "sso": False},
    {"memory_guaranteed": "1GiB", "ballooning_enabled": False},
    {"description": "hello", "comment": "c", "timezone": "Europe/Prague"},
    {"serial_policy": "custom", "serial_policy_value": "x"},
    {"smartcard_enabled": True, "io_threads": 2, "rng_device": "hwrng"},
    {"numa_tune_mode": "strict", "storage_error_resume_behaviour": "kill"},
    {"custom_properties": [{"name": "sap_agent", "value": "true"}]},
    {"placement_policy": "migratable", "placement_policy_hosts": ["alpha", "beta"]},
    {"placement_policy": "pinned", "placement_policy_hosts": ["alpha"], "cpu_mode": "host_passthrough"},
    {"boot_devices": ["network"], "operating_system": "rhel_8x64"},
    {"custom_emulated_machine": "pc-q35", "custom_compatibility_version": "4.6"},
    {"multi_queues_enabled": False, "virtio_scsi_enabled": False, "tpm_enabled": True},
    {"cpu_pinning": [{"cpu": 1, "vcpu": 0}]},
    {"nics": [{"name": "n2", "profile_name": "mgmt"}]},
    {"delete_protected": False},
    {"state": "absent"},
]
#: Options of the cluster Default.
OF_A_CLUSTER: list[dict[str, Any]] = [
    {"scheduling_policy": "power_saving"},
    {
        "scheduling_policy": "evenly_distributed",
        "scheduling_policy_properties": [{"name": "HighUtilization", "value": "70"}],
    },
    {"ha_reservation": False, "threads_as_cores": False, "memory_policy": "desktop"},
    {"description": "z", "comment": "c", "ballooning": False, "host_reason": True},
    {"resilience_policy": "do_not_migrate", "migration_auto_converge": "true"},
    {"fence_enabled": False, "fence_skip_if_sd_active": True},
    {"cpu_type": "Intel Haswell Family", "rng_sources": ["hwrng"], "serial_policy": "vm"},
]
#: Others, in an order in which each finds what it needs.
OTHERS: list[tuple[str, dict[str, Any]]] = [
    ("ovirt_tag", {"name": "mytag", "vms": ["web1", "web2"]}),
    ("ovirt_tag", {"name": "mytag", "state": "attached", "vms": ["web3"]}),
    ("ovirt_tag", {"name": "mytag", "state": "detached", "vms": ["web3"]}),
    ("ovirt_tag", {"name": "child", "parent": "mytag", "hosts": ["alpha"]}),
    ("ovirt_tag", {"name": "mytag", "vms": []}),
    ("ovirt_tag", {"name": "mytag", "state": "absent"}),
    ("ovirt_affinity_label", {"name": "ml", "cluster": "Default", "vms": ["idle"], "hosts": ["alpha"]}),
    ("ovirt_affinity_label", {"name": "ml", "state": "absent"}),
    ("ovirt_affinity_group", {"name": "apart", "cluster": "Default", "vms": ["idle"]}),
    ("ovirt_affinity_group", {"name": "apart", "cluster": "Default", "state": "absent"}),
    ("ovirt_user", {"name": "user1", "authz_name": "internal-authz"}),
    (
        "ovirt_permission",
        {
            "user_name": "user1",
            "authz_name": "internal-authz",
            "object_type": "vm",
            "object_name": "web1",
            "role": "UserVmManager",
        },
    ),
    (
        "ovirt_permission",
        {
            "user_name": "user1",
            "authz_name": "internal-authz",
            "object_type": "system",
            "role": "ReadOnlyAdmin",
        },
    ),
    ("ovirt_user", {"name": "user1", "authz_name": "internal-authz", "state": "absent"}),
    ("ovirt_cluster", {"name": "mycl", "data_center": "DC", "compatibility_version": "4.7"}),
    ("ovirt_cluster", {"id": "cluster2", "name": "Renamed"}),
    ("ovirt_cluster", {"name": "mycl", "state": "absent"}),
    ("ovirt_vm", {"name": "spare", "cluster": "Default", "state": "next_run", "cpu_cores": 2}),
    ("ovirt_vm", {"name": "idle", "state": "absent"}),
]
#: What is done to a VM that is down in the end, and whether a second time does it again.
LIFE: list[tuple[dict[str, Any], bool]] = [
    ({"state": "running"}, False),
    ({"memory": "2GiB"}, False),
    ({"state": "next_run", "cpu_threads": 2}, False),
    ({"state": "running", "migrate": True}, True),
    ({"state": "reboot"}, True),
    ({"state": "reset"}, True),
    ({"state": "suspended"}, False),
    ({"state": "running"}, False),
    ({"state": "stopped"}, False),
]


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with simulated_engine(WORLD, tmp_path_factory.mktemp("modules")) as url, impatient():
        yield url


def changes(engine: str, module: str, **arguments: Any) -> list[bool]:
    """Run a module in check mode, for real, and once more; says each time whether it changed something."""
    results = [run(module, engine, check=check, **arguments) for check in (True, False, False)]
    assert not any(result.get("failed") for result in results), results
    return [result["changed"] for result in results]


def test_what_a_vm_is_given_it_keeps(engine: str) -> None:
    for options in OF_A_VM:
        given = {"name": "opts", "cluster": "Default", "state": "present"} | options
        assert changes(engine, "ovirt_vm", **given) == [True, True, False], options


def test_what_a_cluster_is_given_it_keeps(engine: str) -> None:
    for options in OF_A_CLUSTER:
        given = {"name": "Default", "data_center": "DC"} | options
        assert changes(engine, "ovirt_cluster", **given) == [True, True, False], options


def test_others(engine: str) -> None:
    for module, options in OTHERS:
        assert changes(engine, module, **options) == [True, True, False], (module, options)


def test_the_life_of_a_vm(engine: str) -> None:
    """Only for real: in check mode the module waits for a status that never comes."""
    run("ovirt_vm", engine, name="lives", cluster="Default", memory="1GiB")
    for options, again in LIFE:
        given = {"name": "lives", "timeout": 60} | options
        results = [run("ovirt_vm", engine, **given) for _ in range(2)]
        assert [result.get("changed") for result in results] == [True, again], (options, results)
    events = run("ovirt_event_info", engine, search="vm.name=lives")["ovirt_events"]
    codes = {event["code"] for event in events}
    assert {2039, 9611, 253, 62, 221, 501} <= codes
