"""Data centers, networks, clusters, hosts and VMs: what placement reads of them, as the engine shows it."""

from __future__ import annotations

from typing import Any

from ovirt_simulator.core.entities import BLANK_TEMPLATE, Host, Vm
from ovirt_simulator.http.call import Call, Links
from ovirt_simulator.http.fields import (
    DESCRIPTION,
    NAME,
    Shape,
    fixed,
    linked,
    mention,
    mentions,
    nested,
    parent,
    properties,
    reference,
    value,
    version,
    when,
)
from ovirt_simulator.http.markup import attribute, element, text

_MIB = 1 << 20

# -- data centers, networks, clusters

DATA_CENTER = Shape(
    "data_center",
    (
        NAME,
        DESCRIPTION,
        linked("clusters networks permissions"),
        value("local", "local_storage"),
        value("status"),
        version(),
    ),
)


def _first_data_center(links: Links, _: Any) -> str:
    """To the first one, as far as the state can say."""
    return links.reference("data_center", "datacenters", next(iter(links.call.state.data_centers), None))


NETWORK = Shape("network", (NAME, linked("permissions vnic_profiles"), _first_data_center))
VNIC_PROFILE = Shape("vnic_profile", (NAME, linked("permissions"), reference("network", "networks")))
CLUSTER = Shape(
    "cluster",
    (
        NAME,
        DESCRIPTION,
        linked("affinity_groups networks permissions"),
        "<cpu><architecture>x86_64</architecture><type>Secure Intel Skylake Server Family</type></cpu>",
        properties("custom_scheduling_policy_properties", "scheduling_properties"),
        value("ha_reservation"),
        nested("memory_policy", nested("over_commit", value("percent", "memory_overcommit_percent"))),
        value("threads_as_cores", "count_threads_as_cores"),
        value("upgrade_correlation_id"),
        value("upgrade_in_progress", "upgrade_mode"),
        value("upgrade_percent_complete", lambda cluster: cluster.upgrade_percent),
        version(),
        reference("data_center", "datacenters"),
        reference("scheduling_policy", "schedulingpolicies", lambda cluster: cluster.policy_id or None),
    ),
)

# -- hosts

_HOST_LINKS = linked("nics numa_nodes affinity_labels permissions tags statistics", storage=None)


def _threads(host: Host) -> int:
    return max(1, (host.threads or host.cores) // host.cores if host.cores else 1)


HOST = Shape(
    "host",
    (
        NAME,
        _HOST_LINKS,
        value("address"),
        nested(
            "cpu",
            nested(
                "topology",
                value("cores", lambda host: host.cores // host.sockets),
                value("sockets"),
                value("threads", _threads),
            ),
        ),
        value("max_scheduling_memory", lambda host: host.free_mb * _MIB),
        value("memory", lambda host: host.memory_mb * _MIB),
        nested("spm", value("status", lambda host: "spm" if host.spm else "none")),
        value("status"),
        value("status_detail"),
        value("update_available"),
        reference("cluster", "clusters"),
    ),
    source=lambda _, host: (host,),
)
#: As lists of members, actions and labels mention a host or VM: with its parts.
HOST_OUTLINE = Shape("host", (NAME, _HOST_LINKS))
HOST_ACTED = Shape("host", (_HOST_LINKS,))
HOST_MENTION, VM_MENTION = Shape("host", ()), Shape("vm", ())

# -- VMs

#: Statuses without a host, and without all that only a running VM has.
_OFF = frozenset({"down", "suspended", "image_locked", "image_illegal"})
_VM_LINKS = linked(
    "cdroms disk_attachments watchdogs graphics_consoles host_devices nics numa_nodes affinity_labels"
    " permissions tags statistics"
)
#: From this on, in MiB, a video device is a QXL one (the engine's VideoDeviceSettings).
_QXL_MB = 72


def _address(call: Call, vm: Vm) -> str | None:
    """Give the address of the host that a VM runs on."""
    host = call.state.hosts.get(vm.host or "") if vm.status not in _OFF else None
    return None if host is None else host.address


def _display(links: Links, vm: Vm) -> str:
    """How the VM's screen is reached, and its video device; one that has no host has no address."""
    video = "qxl" if vm.video_mb >= _QXL_MB else "vga" if vm.video_mb else None
    address = text("address", _address(links.call, vm))
    return element("display", address, "<monitors>1</monitors>", text("video_type", video))


VM = Shape(
    "vm",
    (
        NAME,
        DESCRIPTION,
        _VM_LINKS,
        nested(
            "cpu",
            value("architecture"),
            nested(
                "topology",
                value("cores", lambda vm: max(1, vm.vcpus // (vm.sockets * vm.threads_per_core))),
                value("sockets"),
                value("threads", "threads_per_core"),
            ),
        ),
        value("cpu_pinning_policy", "cpu_pinning"),
        properties("custom_properties", item="custom_property"),
        _display,
        nested("high_availability", value("enabled", "ha"), value("priority", "ha_priority")),
        nested("io", value("threads", "io_threads")),
        value("memory", lambda vm: vm.memory_mb * _MIB),
        nested(
            "memory_policy",
            value("guaranteed", lambda vm: vm.guaranteed_mb * _MIB),
            value("max", lambda vm: 4 * vm.memory_mb * _MIB),
        ),
        value("origin", lambda vm: "managed_hosted_engine" if vm.hosted_engine else "ovirt"),
        "<os><type>other</type></os>",
        nested("placement_policy", value("affinity"), mentions("hosts", "host", "hosts", "pinned_hosts")),
        reference("cluster", "clusters"),
        reference("cpu_profile", "cpuprofiles"),
        lambda _, vm: "" if vm.quota is None else f'<quota id="{attribute(vm.quota)}"/>',
        fixed("next_run_configuration_exists", False),
        when(lambda _, vm: vm.status not in _OFF, fixed("run_once", False), value("start_time", "started")),
        value("status"),
        value("status_detail"),
        value("stop_time", "stopped"),
        reference("host", "hosts", lambda vm: vm.host if vm.status not in _OFF else None),
        reference("instance_type", "instancetypes"),
        lambda _, vm: mention("original_template", "templates", vm.template or BLANK_TEMPLATE),
        reference("template", "templates", lambda vm: vm.template or BLANK_TEMPLATE),
    ),
    source=lambda call, vm: (vm, _address(call, vm)),
)
VM_OUTLINE = Shape("vm", (NAME, _VM_LINKS))
VM_ACTED = Shape("vm", (_VM_LINKS,))
DISK_ATTACHMENT = Shape(
    "disk_attachment", (value("bootable"), reference("disk", "disks", "id"), parent("vm", "vms", "vm_id"))
)
DISK = Shape("disk", (value("name", "id"), reference("disk_profile", "diskprofiles", "profile")))
NIC = Shape("nic", (NAME, parent("vm", "vms", "vm_id"), reference("vnic_profile", "vnicprofiles")))
