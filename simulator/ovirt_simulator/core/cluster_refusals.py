"""The messages that the engine refuses clusters and data centers with."""

from __future__ import annotations

from collections.abc import Iterable

from .refusals import bad_parameters, conflict
from .rejections import Rejected


def cluster_name_used(verb: str) -> Rejected:
    return conflict(
        "CLUSTER_CANNOT_DO_ACTION_NAME_IN_USE", f"Cannot {verb} Cluster. Cluster name is already in use."
    )


def cpu_unknown() -> Rejected:
    return bad_parameters(
        "ACTION_TYPE_FAILED_CPU_NOT_FOUND", "Cannot create Cluster. The chosen CPU is not supported."
    )


def cpu_illegal() -> Rejected:
    return conflict(
        "CLUSTER_CANNOT_UPDATE_CPU_ILLEGAL",
        "Cannot change Cluster CPU type unless all Hosts attached to this Cluster are in Maintenance.",
    )


def cpu_detected_only_when_empty() -> Rejected:
    return conflict(
        "CLUSTER_CANNOT_SET_CPU_AUTODETECTION",
        "Cannot change Cluster CPU Type to Auto Detect when there are VMs or hosts in the cluster.",
    )


def architecture_illegal() -> Rejected:
    return conflict(
        "CLUSTER_CANNOT_UPDATE_CPU_ARCHITECTURE_ILLEGAL",
        "Cannot change Cluster CPU architecture when there are Hosts or VMs attached to this Cluster.",
    )


def cpu_above_hosts(hosts: Iterable[str]) -> Rejected:
    return conflict(
        "CLUSTER_CANNOT_UPDATE_CPU_WITH_HOSTS_MISSING_FLAGS",
        "Cannot change Cluster CPU type when there are active Hosts that do not support the selected CPU"
        f" type.\n\nPlease move Host {', '.join(hosts)} to maintenance first.",
    )


def cpu_with_suspended_vms() -> Rejected:
    return conflict(
        "CLUSTER_CANNOT_UPDATE_CPU_WITH_SUSPENDED_VMS",
        "Cannot update Cluster and change CPU Cluster level if there are suspended VMs in the Cluster",
    )


def version_below_hosts() -> Rejected:
    return bad_parameters(
        "ACTION_TYPE_FAILED_CANNOT_DECREASE_CLUSTER_WITH_HOSTS_COMPATIBILITY_VERSION",
        "Cluster compatibility version can't be decreased if there are hosts in the Cluster.",
    )


def version_below_data_center() -> Rejected:
    return bad_parameters(
        "CLUSTER_CANNOT_ADD_COMPATIBILITY_VERSION_WITH_LOWER_STORAGE_POOL",
        "Cannot add Cluster with Compatibility Version that is lower than the Data Center Compatibility"
        " Version.\n-Please upgrade your Cluster to a later Compatibility version first.",
    )


def other_data_center() -> Rejected:
    return conflict(
        "CLUSTER_CANNOT_CHANGE_STORAGE_POOL",
        "Cannot change Data Center association when editing a Cluster.",
    )


def one_cluster_of_local_storage() -> Rejected:
    return bad_parameters(
        "CLUSTER_CANNOT_ADD_MORE_THEN_ONE_HOST_TO_LOCAL_STORAGE",
        'Cannot add more than one Cluster to a Data Center with "Local Storage".',
    )


def no_service() -> Rejected:
    return bad_parameters(
        "CLUSTER_AT_LEAST_ONE_SERVICE_MUST_BE_ENABLED",
        "At least one service [virt / gluster] must be enabled on the cluster.",
    )


def virt_with_vms() -> Rejected:
    return conflict(
        "CLUSTER_CANNOT_DISABLE_VIRT_WHEN_CLUSTER_CONTAINS_VMS",
        "Cannot disable virt service on the cluster as it contains VMs.",
    )


def no_attestation_server() -> Rejected:
    return bad_parameters(
        "CLUSTER_CANNOT_SET_TRUSTED_ATTESTATION_SERVER_NOT_CONFIGURED",
        "Attestation server should be configured correctly.",
    )


def overcommit_without_means() -> Rejected:
    return conflict(
        "CLUSTER_TO_ALLOW_MEMORY_OPTIMIZATION_YOU_MUST_ALLOW_KSM_OR_BALLOONING",
        "KSM or ballooning must be enabled to allow memory optimization.",
    )


def bios_of_x86_only() -> Rejected:
    return conflict("NON_DEFAULT_BIOS_TYPE_FOR_X86_ONLY", "Q35 chipset is allowed for x86 architecture only.")


def implicit_labels() -> Rejected:
    return conflict(
        "CLUSTER_IMPLICIT_AFFINITY_GROUP_IS_NOT_SUPPORTED",
        "Cannot edit Cluster. Implicit affinity groups are not supported in cluster version 4.4 and above."
        " Please update/remove affinity labels with the implicit affinity groups.",
    )


def fips_with_hosts() -> Rejected:
    return conflict(
        "CLUSTER_CANNOT_UPDATE_FIPS_VDS_MAINTENANCE",
        "Cannot update Cluster FIPS mode unless all Hosts attached to this Cluster are in Maintenance.",
    )


def data_center_name_used(action: str) -> Rejected:
    return conflict(
        "ACTION_TYPE_FAILED_STORAGE_POOL_NAME_ALREADY_EXIST",
        f"Cannot {action} Data Center. The Data Center name is already in use.",
    )


def data_center_above_clusters(clusters: Iterable[str]) -> Rejected:
    return bad_parameters(
        "ERROR_CANNOT_UPDATE_STORAGE_POOL_COMPATIBILITY_VERSION_BIGGER_THAN_CLUSTERS",
        "Cannot update Data Center compatibility version to a value that is greater than its cluster's"
        f" version. The following clusters should be upgraded: {','.join(clusters)}.",
    )


def data_center_version_decreased() -> Rejected:
    return bad_parameters(
        "ACTION_TYPE_FAILED_CANNOT_DECREASE_DATA_CENTER_COMPATIBILITY_VERSION",
        "Cannot decrease data center compatibility version.",
    )


def storage_format_downgraded(domains: Iterable[str]) -> Rejected:
    return bad_parameters(
        "ACTION_TYPE_FAILED_DECREASING_COMPATIBILITY_VERSION_CAUSES_STORAGE_FORMAT_DOWNGRADING",
        "Cannot edit Data Center. This action will cause storage format downgrading which is not supported."
        f" The following storage domains cannot be downgraded: {','.join(domains)}.",
    )
