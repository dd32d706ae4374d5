"""Data centers, networks, clusters, hosts and VMs as the engine shows them."""

from __future__ import annotations

from typing import Any

from ovirt_simulator.core.entities import Host, Vm
from ovirt_simulator.http.call import Call, Links
from ovirt_simulator.http.fields import (
    DESCRIPTION,
    NAME,
    Shape,
    actions,
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
from ovirt_simulator.http.markup import attribute, element, lines, text

_MIB = 1 << 20
BLANK_TEMPLATE = "00000000-0000-0000-0000-000000000000"


# -- data centers, networks, clusters

DATA_CENTER = Shape(
    "data_center",
    (
        NAME,
        DESCRIPTION,
        value("comment", lambda one: one.comment),
        linked("quotas iscsi_bonds qoss clusters networks storage_domains permissions"),
        value("local", "local_storage"),
        fixed("quota_mode", "disabled"),
        value("status"),
        fixed("storage_format", "v5"),
        nested("supported_versions", version()),
        version(),
    ),
)


def _first_data_center(links: Links, _: Any) -> str:
    """To the first one, as far as the state can say."""
    return links.reference("data_center", "datacenters", next(iter(links.call.state.data_centers), None))


NETWORK = Shape(
    "network",
    (
        NAME,
        fixed("description", ""),
        fixed("comment", ""),
        linked("network_labels permissions vnic_profiles"),
        fixed("mtu", 0),
        fixed("stp", False),
        "<usages><usage>vm</usage></usages>",
        _first_data_center,
    ),
)
VNIC_PROFILE = Shape(
    "vnic_profile",
    (
        NAME,
        linked("permissions"),
        "<pass_through><mode>disabled</mode></pass_through>",
        fixed("port_mirroring", False),
        reference("network", "networks"),
    ),
)

#: What all hosts have.
_CPU_TYPE = "Secure Intel Skylake Server Family"
_FENCING = (
    "<error_handling><on_error>migrate</on_error></error_handling>\n"
    "<fencing_policy><enabled>true</enabled><skip_if_connectivity_broken><enabled>false"
    "</enabled><threshold>50</threshold></skip_if_connectivity_broken>"
    "<skip_if_gluster_bricks_up>false</skip_if_gluster_bricks_up>"
    "<skip_if_gluster_quorum_not_met>false</skip_if_gluster_quorum_not_met><skip_if_sd_active>"
    "<enabled>false</enabled></skip_if_sd_active></fencing_policy>\n"
    "<fips_mode>disabled</fips_mode>\n"
    "<firewall_type>firewalld</firewall_type>\n"
    "<gluster_service>false</gluster_service>"
)
_KSM = (
    "<ksm><enabled>true</enabled><merge_across_nodes>true</merge_across_nodes></ksm>\n"
    "<log_max_memory_used_threshold>95</log_max_memory_used_threshold>\n"
    "<log_max_memory_used_threshold_type>percentage</log_max_memory_used_threshold_type>"
)
_CLUSTER_MIGRATION = (
    "<migration><auto_converge>inherit</auto_converge><bandwidth><assignment_method>auto"
    "</assignment_method></bandwidth><compressed>inherit</compressed><encrypted>inherit"
    '</encrypted><policy id="80554327-0569-496b-bdeb-fcbbf52b827b"/></migration>\n'
    "<required_rng_sources><required_rng_source>urandom</required_rng_source>"
    "</required_rng_sources>\n"
    "<switch_type>legacy</switch_type>"
)


def _management_network(links: Links, _: Any) -> str:
    networks = links.call.state.networks.values() if links.call.all_content else ()
    found = next((network.id for network in networks if network.name == "ovirtmgmt"), None)
    return "" if found is None else mention("management_network", "networks", found)


CLUSTER = Shape(
    "cluster",
    (
        actions("resetemulatedmachine upgrade syncallnetworks"),
        NAME,
        DESCRIPTION,
        value("comment", lambda one: one.comment),
        linked(
            "affinity_groups gluster_hooks gluster_volumes enabled_features external_network_providers"
            " cpu_profiles network_filters networks permissions"
        ),
        "<ballooning_enabled>true</ballooning_enabled>\n<bios_type>q35_sea_bios</bios_type>",
        f"<cpu><architecture>x86_64</architecture><type>{_CPU_TYPE}</type></cpu>",
        properties("custom_scheduling_policy_properties", "scheduling_properties"),
        _FENCING,
        value("ha_reservation"),
        _KSM,
        nested(
            "memory_policy",
            nested("over_commit", value("percent", "memory_overcommit_percent")),
            "<transparent_hugepages><enabled>true</enabled></transparent_hugepages>",
        ),
        _CLUSTER_MIGRATION,
        value("threads_as_cores", "count_threads_as_cores"),
        "<trusted_service>false</trusted_service>\n<tunnel_migration>false</tunnel_migration>",
        value("upgrade_correlation_id"),
        value("upgrade_in_progress", "upgrade_mode"),
        value("upgrade_percent_complete", lambda cluster: cluster.upgrade_percent),
        version(),
        "<virt_service>true</virt_service>\n<vnc_encryption>false</vnc_encryption>",
        reference("data_center", "datacenters"),
        # The pool that every engine has.
        reference("mac_pool", "macpools", lambda _: "58ca604b-017d-0374-0220-00000000014e"),
        _management_network,
        reference("scheduling_policy", "schedulingpolicies", lambda cluster: cluster.policy_id or None),
    ),
)

# -- hosts

_HOST_ACTIONS = actions(
    "refresh install activate deactivate upgrade unregisteredstoragedomainsdiscover upgradecheck"
    " syncallnetworks setupnetworks approve commitnetconfig enrollcertificate fence forceselectspm"
    " iscsidiscover iscsilogin"
)
_HOST_LINKS = linked(
    "devices hooks nics numa_nodes network_attachments storage_connection_extensions unmanaged_networks"
    " external_network_provider_configurations cpu_units affinity_labels katello_errata permissions tags"
    " statistics",
    fenceagents=None,
    storage=None,
)


def _threads(host: Host) -> int:
    return max(1, (host.threads or host.cores) // host.cores if host.cores else 1)


def _summary(links: Links, host: Host) -> str:
    active, migrating, total = links.call.engine.queries.host_summary(host.id)
    return element("summary", text("active", active), text("migrating", migrating), text("total", total))


def _hosted_engine(links: Links, host: Host) -> str:
    """What only `all_content` shows; where the hosted engine can run, hosts have an HA agent."""
    call = links.call
    if not call.all_content:
        return ""
    clusters = call.once(
        "hosted engine",
        lambda: frozenset(vm.cluster for vm in tuple(call.state.vms.values()) if vm.hosted_engine),
    )
    maintenance = host.status == "maintenance"
    agent = element(
        "hosted_engine",
        text("active", not maintenance),
        text("configured", True),
        text("global_maintenance", False),
        text("local_maintenance", maintenance),
        text("score", 0 if maintenance else 3400),
    )
    return lines(agent if host.cluster in clusters else "", text("network_operation_in_progress", False))


HOST = Shape(
    "host",
    (
        _HOST_ACTIONS,
        NAME,
        value("comment", lambda one: one.comment),
        _HOST_LINKS,
        value("address"),
        fixed("auto_numa_status", "unknown"),
        nested(
            "cpu",
            "<name>Intel Xeon Processor (Skylake)</name><speed>2100</speed>",
            nested(
                "topology",
                value("cores", lambda host: host.cores // host.sockets),
                value("sockets"),
                value("threads", _threads),
            ),
            fixed("type", _CPU_TYPE),
        ),
        "<device_passthrough><enabled>false</enabled></device_passthrough>",
        fixed("external_status", "ok"),
        fixed("kdump_status", "disabled"),
        "<ksm><enabled>false</enabled></ksm>",
        (
            "<libvirt_version><build>0</build><full_version>libvirt-9.5.0-7.el9</full_version>"
            "<major>9</major><minor>5</minor><revision>0</revision></libvirt_version>"
        ),
        value("max_scheduling_memory", lambda host: host.free_mb * _MIB),
        value("memory", lambda host: host.memory_mb * _MIB),
        fixed("numa_supported", False),
        (
            "<os><custom_kernel_cmdline></custom_kernel_cmdline><type>RHEL</type>"
            "<version><full_version>9.4 - 1.el9</full_version><major>9</major><minor>4</minor></version></os>"
        ),
        fixed("ovn_configured", False),
        fixed("port", 54321),
        (
            "<power_management><automatic_pm_enabled>true</automatic_pm_enabled><enabled>false</enabled>"
            "<kdump_detection>true</kdump_detection><pm_proxies/></power_management>"
        ),
        fixed("protocol", "stomp"),
        fixed("reinstallation_required", False),
        "<se_linux><mode>enforcing</mode></se_linux>",
        nested("spm", "<priority>5</priority>", value("status", lambda host: "spm" if host.spm else "none")),
        "<ssh><port>22</port></ssh>",
        value("status"),
        value("status_detail"),
        _summary,
        "<transparent_hugepages><enabled>true</enabled></transparent_hugepages>",
        fixed("type", "rhel"),
        value("update_available"),
        (
            "<version><build>6</build><full_version>vdsm-4.50.5-1.el9</full_version>"
            "<major>4</major><minor>50</minor><revision>0</revision></version>"
        ),
        fixed("vgpu_placement", "consolidated"),
        _hosted_engine,
        reference("cluster", "clusters"),
    ),
    source=lambda call, host: (host, call.engine.queries.host_summary(host.id)),
)
#: As lists of members, actions and labels mention a host or VM: what one can do with it, and its parts.
HOST_OUTLINE = Shape("host", (_HOST_ACTIONS, NAME, _HOST_LINKS))
HOST_ACTED = Shape("host", (_HOST_ACTIONS, _HOST_LINKS))
HOST_MENTION, VM_MENTION = Shape("host", ()), Shape("vm", ())

# -- VMs

#: Statuses without a host, and without all that only a running VM has.
_OFF = frozenset({"down", "suspended", "image_locked", "image_illegal"})
_VM_ACTIONS = actions(
    "detach export commitsnapshot clone reordermacaddresses logon maintenance previewsnapshot ticket"
    " thawfilesystems undosnapshot freezefilesystems cancelmigration reboot migrate shutdown start"
    " stop suspend"
)
_VM_LINKS = linked(
    "applications cdroms disk_attachments watchdogs graphics_consoles host_devices mediated_devices nics"
    " numa_nodes sessions reported_devices snapshots backups checkpoints affinity_labels katello_errata"
    " permissions tags statistics"
)
#: From this on, in MiB, a video device is a QXL one (the engine's VideoDeviceSettings).
_QXL_MB = 72


def _is_on(_: Links, vm: Vm) -> bool:
    return vm.status not in _OFF


def _address(call: Call, vm: Vm) -> str | None:
    """Give the address of the host that a VM runs on."""
    host = call.state.hosts.get(vm.host or "") if vm.status not in _OFF else None
    return None if host is None else host.address


def _display(links: Links, vm: Vm) -> str:
    """How the VM's screen is reached, and its video device; one that has no host has no address."""
    address = _address(links.call, vm)
    return element(
        "display",
        text("address", address),
        "<allow_override>false</allow_override><copy_paste_enabled>true</copy_paste_enabled>"
        "<disconnect_action>LOCK_SCREEN</disconnect_action><file_transfer_enabled>true"
        "</file_transfer_enabled><monitors>1</monitors>",
        "" if address is None else "<port>5900</port>",
        "<single_qxl_pci>false</single_qxl_pci><smartcard_enabled>false</smartcard_enabled><type>vnc</type>",
        text("video_type", "qxl" if vm.video_mb >= _QXL_MB else "vga" if vm.video_mb else None),
    )


def _host_of(links: Links, vm: Vm) -> str:
    """One whose queries are filtered does not see the host."""
    shown = vm.host if vm.status not in _OFF and not links.call.filtered else None
    return links.reference("host", "hosts", shown)


VM = Shape(
    "vm",
    (
        _VM_ACTIONS,
        NAME,
        DESCRIPTION,
        fixed("comment", ""),
        _VM_LINKS,
        "<auto_pinning_policy>disabled</auto_pinning_policy>",
        "<bios><boot_menu><enabled>false</enabled></boot_menu><type>q35_sea_bios</type></bios>",
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
        fixed("cpu_shares", 0),
        value("creation_time", "created"),
        properties("custom_properties", item="custom_property"),
        fixed("delete_protected", False),
        _display,
        nested("high_availability", value("enabled", "ha"), value("priority", "ha_priority")),
        nested("io", value("threads", "io_threads")),
        value("memory", lambda vm: vm.memory_mb * _MIB),
        nested(
            "memory_policy",
            fixed("ballooning", True),
            value("guaranteed", lambda vm: vm.guaranteed_mb * _MIB),
            value("max", lambda vm: 4 * vm.memory_mb * _MIB),
        ),
        (
            "<migration><auto_converge>inherit</auto_converge><compressed>inherit</compressed>"
            "<encrypted>inherit</encrypted></migration>\n<migration_downtime>-1</migration_downtime>\n"
            "<multi_queues_enabled>true</multi_queues_enabled>"
        ),
        value("origin", lambda vm: "managed_hosted_engine" if vm.hosted_engine else "ovirt"),
        "<os><boot><devices><device>hd</device></devices></boot><type>other</type></os>",
        when(
            lambda links, _: links.call.all_content,
            "<console><enabled>false</enabled></console>\n<soundcard_enabled>true</soundcard_enabled>",
        ),
        when(
            lambda links, _: not links.call.filtered,
            nested("placement_policy", value("affinity"), mentions("hosts", "host", "hosts", "pinned_hosts")),
        ),
        (
            '<sso><methods><method id="guest_agent"/></methods></sso>\n<start_paused>false</start_paused>\n'
            "<stateless>false</stateless>\n"
            "<storage_error_resume_behaviour>auto_resume</storage_error_resume_behaviour>\n"
            "<time_zone><name>Etc/GMT</name></time_zone>\n<type>server</type>\n<usb><enabled>false</enabled></usb>"
        ),
        reference("cluster", "clusters"),
        reference("cpu_profile", "cpuprofiles"),
        lambda _, vm: "" if vm.quota is None else f'<quota id="{attribute(vm.quota)}"/>',
        fixed("next_run_configuration_exists", False),
        fixed("numa_tune_mode", "interleave"),
        when(_is_on, fixed("run_once", False), value("start_time", "started")),
        value("status"),
        value("status_detail"),
        value("stop_time", "stopped"),
        _host_of,
        reference("instance_type", "instancetypes"),
        lambda _, vm: mention("original_template", "templates", vm.template or BLANK_TEMPLATE),
        reference("template", "templates", lambda vm: vm.template or BLANK_TEMPLATE),
    ),
    source=lambda call, vm: (vm, _address(call, vm)),
)
VM_OUTLINE = Shape("vm", (_VM_ACTIONS, NAME, _VM_LINKS))
VM_ACTED = Shape("vm", (_VM_ACTIONS, _VM_LINKS))
DISK_ATTACHMENT = Shape(
    "disk_attachment",
    (
        fixed("active", True),
        value("bootable"),
        fixed("interface", "virtio_scsi"),
        fixed("read_only", False),
        reference("disk", "disks", "id"),
        parent("vm", "vms", "vm_id"),
    ),
)
DISK = Shape(
    "disk", (value("name", "id"), fixed("status", "ok"), reference("disk_profile", "diskprofiles", "profile"))
)
NIC = Shape(
    "nic",
    (
        NAME,
        linked("reported_devices network_filter_parameters statistics"),
        parent("vm", "vms", "vm_id"),
        fixed("interface", "virtio"),
        fixed("linked", True),
        fixed("plugged", True),
        reference("vnic_profile", "vnicprofiles"),
    ),
)
