"""A cluster as the engine shows it."""

from __future__ import annotations

from ovirt_simulator.core.entities import Cluster
from ovirt_simulator.http.links import Links
from ovirt_simulator.http.markup import attribute, element, lines, path, text

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

#: What all hosts have.
CPU_TYPE = "Secure Intel Skylake Server Family"
#: The pool that every engine has.
_DEFAULT_MAC_POOL = "58ca604b-017d-0374-0220-00000000014e"
#: What an engine shows of every cluster, and nothing here depends on.
_FIRST = "<ballooning_enabled>true</ballooning_enabled>\n<bios_type>q35_sea_bios</bios_type>"
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
_MIGRATION = (
    "<migration><auto_converge>inherit</auto_converge><bandwidth><assignment_method>auto"
    "</assignment_method></bandwidth><compressed>inherit</compressed><encrypted>inherit"
    '</encrypted><policy id="80554327-0569-496b-bdeb-fcbbf52b827b"/></migration>\n'
    "<required_rng_sources><required_rng_source>urandom</required_rng_source>"
    "</required_rng_sources>\n"
    "<switch_type>legacy</switch_type>"
)
_TRUST = "<trusted_service>false</trusted_service>\n<tunnel_migration>false</tunnel_migration>"
_LAST = "<virt_service>true</virt_service>\n<vnc_encryption>false</vnc_encryption>"


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
        links.reference("mac_pool", "macpools", _DEFAULT_MAC_POOL),
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
        _FIRST,
        element("cpu", text("architecture", "x86_64"), text("type", CPU_TYPE)),
        properties("custom_scheduling_policy_properties", record.scheduling_properties),
        _FENCING,
        text("ha_reservation", record.ha_reservation),
        _KSM,
        element("memory_policy", memory),
        _MIGRATION,
        text("threads_as_cores", record.count_threads_as_cores),
        _TRUST,
        text("upgrade_correlation_id", record.upgrade_correlation_id),
        text("upgrade_in_progress", record.upgrade_mode),
        text("upgrade_percent_complete", record.upgrade_percent),
        version(record.compatibility),
        _LAST,
    )


def properties(tag: str, values: dict[str, str]) -> str:
    """Render properties by name; nothing when there are none."""
    if not values:
        return ""
    items = (element("property", text("name", name), text("value", value)) for name, value in values.items())
    return element(tag, *items)


def version(compatibility: str) -> str:
    major, _, minor = compatibility.partition(".")
    return element("version", text("major", major), text("minor", minor))
