"""The root, data centers, networks, and the short lists that VMs and hosts refer to."""

from __future__ import annotations

from ovirt_simulator.http.resources import (
    devices,
    infrastructure,
    mac_pools,
    named,
    operating_systems,
    storage,
)
from ovirt_simulator.http.routes.table import Table

TABLE = Table(
    lists={
        "/macpools": ("mac_pools", mac_pools.list_all),
        "/operatingsystems": ("operation_systems", operating_systems.list_all),
        "/datacenters": ("data_centers", infrastructure.list_data_centers),
        "/datacenters/<data_center_id>/clusters": ("clusters", infrastructure.list_clusters),
        "/datacenters/<data_center_id>/networks": ("networks", infrastructure.list_networks_of),
        "/networks": ("networks", infrastructure.list_networks),
        "/networks/<network_id>/vnicprofiles": ("vnic_profiles", infrastructure.list_vnic_profiles_of),
        "/vnicprofiles": ("vnic_profiles", infrastructure.list_vnic_profiles),
        "/instancetypes": ("instance_types", named.INSTANCE_TYPES.list_all),
        "/cpuprofiles": ("cpu_profiles", named.CPU_PROFILES.list_all),
        "/datacenters/<data_center_id>/storagedomains": ("storage_domains", storage.list_of_data_center),
    },
    reads={
        "": infrastructure.get_api,
        "/macpools/<pool_id>": mac_pools.get,
        "/operatingsystems/<system_id>": operating_systems.get,
        "/datacenters/<data_center_id>": infrastructure.get_data_center,
        "/networks/<network_id>": infrastructure.get_network,
        "/vnicprofiles/<profile_id>": infrastructure.get_vnic_profile,
        "/instancetypes/<entity_id>": named.INSTANCE_TYPES.get,
        "/cpuprofiles/<entity_id>": named.CPU_PROFILES.get,
    },
    posts={
        "/networks/<network_id>/vnicprofiles": devices.post_vnic_profile,
    },
)
