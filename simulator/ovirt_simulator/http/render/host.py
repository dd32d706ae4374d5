"""A host as the engine shows it."""

from __future__ import annotations

from ovirt_simulator.core.entities import Host, HostSummary
from ovirt_simulator.http.links import Links
from ovirt_simulator.http.markup import element, lines, text
from ovirt_simulator.http.render.cluster import CPU_TYPE

_MIB = 1 << 20

_ACTIONS = (
    "refresh",
    "install",
    "activate",
    "deactivate",
    "upgrade",
    "unregisteredstoragedomainsdiscover",
    "upgradecheck",
    "syncallnetworks",
    "setupnetworks",
    "approve",
    "commitnetconfig",
    "enrollcertificate",
    "fence",
    "forceselectspm",
    "iscsidiscover",
    "iscsilogin",
)

#: Sub-collections, and what `follow` calls them; None where it has no working name.
LINKS = {
    "fenceagents": None,
    "devices": "devices",
    "hooks": "hooks",
    "nics": "nics",
    "numanodes": "numa_nodes",
    "storage": None,
    "networkattachments": "network_attachments",
    "storageconnectionextensions": "storage_connection_extensions",
    "unmanagednetworks": "unmanaged_networks",
    "externalnetworkproviderconfigurations": "external_network_provider_configurations",
    "cpuunits": "cpu_units",
    "affinitylabels": "affinity_labels",
    "katelloerrata": "katello_errata",
    "permissions": "permissions",
    "tags": "tags",
    "statistics": "statistics",
}

_CPU = "<name>Intel Xeon Processor (Skylake)</name><speed>2100</speed>"
_LIBVIRT = (
    "<libvirt_version><build>0</build><full_version>libvirt-9.5.0-7.el9</full_version>"
    "<major>9</major><minor>5</minor><revision>0</revision></libvirt_version>"
)
_OS = (
    "<os><custom_kernel_cmdline></custom_kernel_cmdline><type>RHEL</type>"
    "<version><full_version>9.4 - 1.el9</full_version><major>9</major><minor>4</minor></version></os>"
)
_VERSION = (
    "<version><build>6</build><full_version>vdsm-4.50.5-1.el9</full_version>"
    "<major>4</major><minor>50</minor><revision>0</revision></version>"
)


def host(record: Host, links: Links, summary: HostSummary, *, extra: str = "") -> str:
    """Render a host; `extra` is what only `all_content` shows."""
    return links.entity(
        "host",
        record.id,
        links.actions(*_ACTIONS),
        text("name", record.name),
        text("comment", record.comment),
        links.links(LINKS),
        _facts(record),
        _state(record, summary),
        extra,
        links.reference("cluster", "clusters", record.cluster),
    )


def outline(host_id: str, links: Links, *, name: str | None = None) -> str:
    """Render a host as actions and member lists mention it: what one can do with it, and its parts."""
    return links.entity("host", host_id, links.actions(*_ACTIONS), text("name", name), links.links(LINKS))


def _facts(record: Host) -> str:
    return lines(
        text("address", record.address),
        text("auto_numa_status", "unknown"),
        element("cpu", _CPU, _topology(record), text("type", CPU_TYPE)),
        "<device_passthrough><enabled>false</enabled></device_passthrough>",
        text("external_status", record.external_status),
        text("kdump_status", "disabled"),
        "<ksm><enabled>false</enabled></ksm>",
        _LIBVIRT,
        text("max_scheduling_memory", record.free_mb * _MIB),
        text("memory", record.memory_mb * _MIB),
        text("numa_supported", False),
        _OS,
        text("ovn_configured", False),
        text("port", 54321),
        "<power_management><automatic_pm_enabled>true</automatic_pm_enabled><enabled>false</enabled>"
        "<kdump_detection>true</kdump_detection><pm_proxies/></power_management>",
    )


def _topology(record: Host) -> str:
    threads = (record.threads or record.cores) // record.cores if record.cores else 1
    return element(
        "topology",
        text("cores", record.cores // record.sockets),
        text("sockets", record.sockets),
        text("threads", max(1, threads)),
    )


def _state(record: Host, summary: HostSummary) -> str:
    return lines(
        text("protocol", "stomp"),
        text("reinstallation_required", False),
        "<se_linux><mode>enforcing</mode></se_linux>",
        element("spm", "<priority>5</priority>", text("status", "spm" if record.spm else "none")),
        "<ssh><port>22</port></ssh>",
        text("status", record.status),
        text("status_detail", record.status_detail),
        element(
            "summary",
            text("active", summary.active),
            text("migrating", summary.migrating),
            text("total", summary.total),
        ),
        "<transparent_hugepages><enabled>true</enabled></transparent_hugepages>",
        text("type", "rhel"),
        text("update_available", record.update_available),
        _VERSION,
        text("vgpu_placement", "consolidated"),
    )


def all_content(*, hosted_engine: bool, maintenance: bool) -> str:
    """Render what only `all_content` shows; `hosted_engine` says whether the host has an HA agent."""
    agent = element(
        "hosted_engine",
        text("active", not maintenance),
        text("configured", True),
        text("global_maintenance", False),
        text("local_maintenance", maintenance),
        text("score", 0 if maintenance else 3400),
    )
    return lines(agent if hosted_engine else "", text("network_operation_in_progress", False))
