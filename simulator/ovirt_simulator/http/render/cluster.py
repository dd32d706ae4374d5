"""A cluster as the engine shows it."""

from __future__ import annotations

from ovirt_simulator.core.cluster_cpu import cpu_architecture
from ovirt_simulator.core.entities import Cluster
from ovirt_simulator.core.mac_pool import DEFAULT_POOL
from ovirt_simulator.http.links import Links
from ovirt_simulator.http.markup import attribute, element, lines, path, text
from ovirt_simulator.http.render.particulars import Usual, with_given

#: Sub-collections, and what `follow` calls them.
LINKS = {
    "affinitygroups": "affinity_groups",
    "glusterhooks": "gluster_hooks",
    "glustervolumes": "gluster_volumes",
    "enabledfeatures": "enabled_features",
    "externalnetworkproviders": "external_network_providers",
    "cpuprofiles": "cpu_profiles",
    "networkfilters": "network_filters",
    "networks": "networks",
    "permissions": "permissions",
}

#: What stands inside of each element if nobody has said anything of it.
_USUAL = Usual(
    {
        "ballooning_enabled": "true",
        "bios_type": "q35_sea_bios",
        "error_handling": "<on_error>migrate</on_error>",
        "fencing_policy": "<enabled>true</enabled>"
        "<skip_if_connectivity_broken><enabled>false</enabled><threshold>50</threshold></skip_if_connectivity_broken>"
        "<skip_if_gluster_bricks_up>false</skip_if_gluster_bricks_up>"
        "<skip_if_gluster_quorum_not_met>false</skip_if_gluster_quorum_not_met>"
        "<skip_if_sd_active><enabled>false</enabled></skip_if_sd_active>",
        "fips_mode": "disabled",
        "firewall_type": "firewalld",
        "gluster_service": "false",
        "ksm": "<enabled>true</enabled><merge_across_nodes>true</merge_across_nodes>",
        "log_max_memory_used_threshold": "95",
        "log_max_memory_used_threshold_type": "percentage",
        "migration": "<auto_converge>inherit</auto_converge>"
        "<bandwidth><assignment_method>auto</assignment_method></bandwidth>"
        "<compressed>inherit</compressed><encrypted>inherit</encrypted>"
        '<policy id="80554327-0569-496b-bdeb-fcbbf52b827b"/>',
        "required_rng_sources": "<required_rng_source>urandom</required_rng_source>",
        "switch_type": "legacy",
        "trusted_service": "false",
        "tunnel_migration": "false",
        "virt_service": "true",
        "vnc_encryption": "false",
    }
)


def cluster(record: Cluster, links: Links, *, management_network: str | None) -> str:
    """Render a cluster; the management network is shown only with `all_content`, so None otherwise."""
    return links.entity(
        "cluster",
        record.id,
        links.actions("resetemulatedmachine", "upgrade", "syncallnetworks"),
        text("name", record.name),
        text("description", record.description),
        text("comment", record.comment),
        links.links(LINKS),
        _configuration(record),
        links.reference("data_center", "datacenters", record.data_center),
        links.reference("mac_pool", "macpools", record.mac_pool or DEFAULT_POOL.id),
        _management_network(management_network),
        links.reference("scheduling_policy", "schedulingpolicies", record.policy_id or None),
    )


def _management_network(network: str | None) -> str:
    if network is None:
        return ""
    return f'<management_network href="{path("networks", network)}" id="{attribute(network)}"/>'


def _configuration(record: Cluster) -> str:
    memory = element("over_commit", text("percent", record.memory_overcommit_percent))
    memory += "<transparent_hugepages><enabled>true</enabled></transparent_hugepages>"
    return lines(
        _shown(record, "ballooning_enabled", "bios_type"),
        element("cpu", text("architecture", cpu_architecture(record)), text("type", record.cpu_type)),
        properties("custom_scheduling_policy_properties", record.scheduling_properties),
        _shown(record, "display", "error_handling", "fencing_policy", "fips_mode", "firewall_type"),
        _shown(record, "gluster_service"),
        text("ha_reservation", record.ha_reservation),
        _shown(record, "ksm", "log_max_memory_used_threshold", "log_max_memory_used_threshold_type"),
        _shown(record, "maintenance_reason_required"),
        with_given(record.others, "memory_policy", memory),
        _shown(
            record, "migration", "optional_reason", "required_rng_sources", "serial_number", "switch_type"
        ),
        text("threads_as_cores", record.count_threads_as_cores),
        _shown(record, "trusted_service", "tunnel_migration"),
        ""
        if record.upgrade_correlation_id is None
        else text("upgrade_correlation_id", record.upgrade_correlation_id),
        text("upgrade_in_progress", record.upgrade_mode),
        text("upgrade_percent_complete", record.upgrade_percent),
        version(record.compatibility),
        _shown(record, "virt_service", "vnc_encryption"),
    )


def _shown(record: Cluster, *tags: str) -> str:
    return _USUAL.shown(record.others, *tags)


def properties(tag: str, values: dict[str, str]) -> str:
    """Render properties by name; nothing when there are none."""
    if not values:
        return ""
    items = (element("property", text("name", name), text("value", value)) for name, value in values.items())
    return element(tag, *items)


def version(compatibility: str) -> str:
    major, _, minor = compatibility.partition(".")
    return element("version", text("major", major), text("minor", minor))
