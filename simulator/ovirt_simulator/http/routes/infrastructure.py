"""The root, data centers, networks, and the short lists that VMs and hosts refer to."""

from __future__ import annotations

from ovirt_simulator.http.resources import (
    assigned_permissions,
    cluster_levels,
    data_centers,
    devices,
    infrastructure,
    instance_types,
    mac_pools,
    named,
    operating_systems,
    permissions,
    storage,
    storage_domains,
)
from ovirt_simulator.http.routes.table import Table

TABLE = Table(
    lists={
        "/datacenters/<data_center_id>/storagedomains/<domain_id>/disks": (
            "disks",
            storage.list_disks_of_domain,
        ),
        "/networks/<network_id>/permissions": ("permissions", assigned_permissions.OF_NETWORK.list_all),
        "/datacenters/<data_center_id>/permissions": (
            "permissions",
            assigned_permissions.OF_DATA_CENTER.list_all,
        ),
        "/macpools": ("mac_pools", mac_pools.list_all),
        "/clusterlevels": ("cluster_levels", cluster_levels.list_all),
        "/operatingsystems": ("operation_systems", operating_systems.list_all),
        "/datacenters": ("data_centers", data_centers.list_all),
        "/datacenters/<data_center_id>/clusters": ("clusters", infrastructure.list_clusters),
        "/datacenters/<data_center_id>/networks": ("networks", infrastructure.list_networks_of),
        "/networks": ("networks", infrastructure.list_networks),
        "/networks/<network_id>/vnicprofiles": ("vnic_profiles", infrastructure.list_vnic_profiles_of),
        "/vnicprofiles": ("vnic_profiles", infrastructure.list_vnic_profiles),
        "/instancetypes": ("instance_types", instance_types.list_all),
        "/cpuprofiles": ("cpu_profiles", named.CPU_PROFILES.list_all),
        "/datacenters/<data_center_id>/storagedomains": (
            "storage_domains",
            storage_domains.list_of_data_center,
        ),
    },
    reads={
        "/datacenters/<data_center_id>/storagedomains/<domain_id>": storage_domains.get_of_data_center,
        "/networks/<network_id>/permissions/<permission_id>": assigned_permissions.OF_NETWORK.get,
        "/datacenters/<data_center_id>/permissions/<permission_id>": assigned_permissions.OF_DATA_CENTER.get,
        "": infrastructure.get_api,
        "/macpools/<pool_id>": mac_pools.get,
        "/clusterlevels/<level>": cluster_levels.get,
        "/operatingsystems/<system_id>": operating_systems.get,
        "/datacenters/<data_center_id>": data_centers.get,
        "/datacenters/<data_center_id>/clusters/<cluster_id>": infrastructure.get_cluster,
        "/datacenters/<data_center_id>/networks/<network_id>": infrastructure.get_network,
        "/networks/<network_id>": infrastructure.get_network,
        "/networks/<network_id>/vnicprofiles/<profile_id>": infrastructure.get_vnic_profile,
        "/vnicprofiles/<profile_id>": infrastructure.get_vnic_profile,
        "/instancetypes/<type_id>": instance_types.get,
        "/cpuprofiles/<entity_id>": named.CPU_PROFILES.get,
    },
    posts={
        "/instancetypes": instance_types.post,
        "/datacenters/<data_center_id>/storagedomains/<domain_id>/activate": storage_domains.activate,
        "/datacenters/<data_center_id>/storagedomains/<domain_id>/deactivate": storage_domains.deactivate,
        "/macpools": mac_pools.post,
        "/datacenters": data_centers.post,
        "/networks/<network_id>/permissions": assigned_permissions.OF_NETWORK.post,
        "/datacenters/<data_center_id>/permissions": assigned_permissions.OF_DATA_CENTER.post,
        "/networks/<network_id>/vnicprofiles": devices.post_vnic_profile_of,
        "/vnicprofiles": devices.post_vnic_profile,
    },
    puts={
        "/macpools/<pool_id>": mac_pools.put,
        "/datacenters/<data_center_id>": data_centers.put,
    },
    deletes={
        "/instancetypes/<type_id>": instance_types.delete,
        "/macpools/<pool_id>": mac_pools.delete,
        "/networks/<network_id>/vnicprofiles/<profile_id>": devices.delete_vnic_profile,
        "/vnicprofiles/<profile_id>": devices.delete_vnic_profile,
        "/datacenters/<data_center_id>": data_centers.delete,
        "/networks/<network_id>/permissions/<permission_id>": permissions.delete,
        "/datacenters/<data_center_id>/permissions/<permission_id>": permissions.delete,
    },
)
