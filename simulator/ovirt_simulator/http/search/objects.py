"""What the engine's search knows: its objects, the fields of each, and the objects that each may name.

A table of facts from the engine's `searchbackend`. Names are in upper case, as the engine compares them.
"""

from __future__ import annotations

import msgspec

from ovirt_simulator.http.search import words
from ovirt_simulator.http.search.fields import (
    COMPARED,
    LESS_OR_MORE,
    OS,
    QUOTA,
    TIMES,
    Field,
    Kind,
    SearchObject,
    define,
    fields,
    flags,
    split,
    texts,
    word,
)

_VM = define(
    "VM",
    [
        *texts("name comment ip on_host fqdn address cluster pool loggedinuser tag datacenter description"),
        *texts("custom_emulated_machine custom_cpu_type compatibility_level k8s_namespace"),
        Field(name="APPS"),
        OS,
        QUOTA,
        word("status", words.VM_STATUS),
        word("type", words.VM_TYPE),
        word("architecture", words.ARCHITECTURE),
        word("bios_type", words.BIOS_TYPE),
        *flags("next_run_config_exists has_illegal_images"),
        *fields(Kind.INTEGER, "cpu_usage mem_usage network_usage migration_progress_percent", COMPARED),
        *fields(Kind.INTEGER, "memory guaranteed_memory vcpus", COMPARED),
        *fields(Kind.SPAN, "uptime", LESS_OR_MORE),
        *fields(Kind.DATE, "creationdate", LESS_OR_MORE),
        *fields(Kind.UUID, "id created_by_user_id"),
        *fields(Kind.EXACT, "custom_compatibility_level"),
    ],
    "hosts host templates template events event users user storage vnic",
)

_HOST = define(
    "HOST",
    [
        *texts("name comment cluster address version cpu_model tag datacenter"),
        word("status", words.HOST_STATUS),
        word("external_status", words.EXTERNAL_STATUS),
        word("type", words.HOST_TYPE),
        word("architecture", words.ARCHITECTURE),
        *flags("update_available"),
        *fields(Kind.INTEGER, "cpu_usage mem_usage network_usage cpus memory", COMPARED),
        *fields(Kind.INTEGER, "active_vms committed_mem", COMPARED),
        *fields(Kind.INTEGER, "migrating_vms ha_score spm_id"),
        *fields(Kind.DECIMAL, "load cpu_speed", COMPARED),
        *fields(Kind.EXACT, "hw_id"),
        Field(name="ID", kind=Kind.UUID, hidden=True),
    ],
    "vms vm templates template events event users user storage nic",
)

_CLUSTER = define(
    "CLUSTER",
    [
        *texts("name description comment cpu_type"),
        word("architecture", words.ARCHITECTURE),
        *fields(Kind.EXACT, "compatibility_level"),
    ],
    "datacenter storage cluster_network",
)

_DATA_CENTER = define(
    "DATACENTER",
    [
        *texts("name description comment compatibility_version"),
        word("status", words.DATA_CENTER_STATUS),
        *flags("local"),
    ],
    "clusters cluster storage network",
)

_TEMPLATE = define(
    "TEMPLATE",
    [
        *texts("name comment description cluster datacenter version_name tag"),
        OS,
        QUOTA,
        word("status", words.TEMPLATE_STATUS),
        word("architecture", words.ARCHITECTURE),
        *fields(Kind.DAY, "creationdate", TIMES),
        *fields(Kind.INTEGER, "childcount mem", COMPARED),
        *fields(Kind.BOOLEAN, "sealed"),
        Field(name="_VMT_ID", kind=Kind.UUID, hidden=True),
    ],
    "vms vm hosts host events event users user storage vnic",
)

_USER = define(
    "USER",
    [
        *texts("name lastname usrname user_and_domain login directory department tag pool"),
        *fields(Kind.EXACT, "type"),
    ],
    "vms vm hosts host templates template events event",
)

_GROUP = define("GROUP", texts("name grpname"))

_EVENT = define(
    "EVENT",
    [
        *texts("message usrname event_host event_vm event_template event_storage event_datacenter"),
        *texts("event_volume correlation_id origin"),
        word("severity", words.SEVERITY, COMPARED),
        *flags("deleted"),
        *fields(Kind.DAY, "time", TIMES),
        *fields(Kind.INTEGER, "type custom_event_id"),
        *(
            Field(name=name, free=True, hidden=True)
            for name in split(
                "_event_vm_id _event_template_id _event_host_id _event_datacenter_id _event_quota_id"
            )
        ),
        *(
            Field(name=name, relations=None, free=True, hidden=True)
            for name in split("usrid _event_storage_id")
        ),
    ],
    "vms vm host templates template users user clusters cluster volumes volume quota",
    order="id",
    descending=True,
)

_DISK = define(
    "DISK",
    [
        *texts("alias name description vm_names quota"),
        word("status", words.IMAGE_STATUS),
        word("disk_type", words.DISK_TYPE),
        word("disk_content_type", words.DISK_CONTENT),
        word("allocation_policy", words.VOLUME_TYPE),
        *flags("shareable wipe_after_delete"),
        *fields(Kind.BIGINT, "provisioned_size size actual_size", LESS_OR_MORE),
        *fields(Kind.DATE, "creation_date last_modified", LESS_OR_MORE),
        *fields(Kind.INTEGER, "number_of_vms", COMPARED),
        *fields(Kind.UUID, "id"),
    ],
    "datacenter storage",
    order="alias id",
)

_STORAGE = define(
    "STORAGE",
    [
        *texts("name datacenter comment description"),
        word("status", words.STORAGE_STATUS),
        word("shared_status", words.STORAGE_SHARED_STATUS),
        word("external_status", words.EXTERNAL_STATUS),
        word("type", words.STORAGE_TYPE),
        *fields(Kind.INTEGER, "free_size used_size total_size committed", COMPARED),
        *(
            Field(name=name, kind=Kind.INTEGER)
            for name in ("LOW_SPACE_THRESHOLD (%)", "CRITICAL_SPACE_THRESHOLD (GB)")
        ),
        *flags("wipe_after_delete discard_after_delete backup"),
    ],
    "hosts host clusters cluster",
)

_NETWORK = define(
    "NETWORK",
    [
        *texts("name description comment datacenter label provider_name qos_name"),
        *fields(Kind.INTEGER, "vlanid mtu", COMPARED),
        *flags("stp vmnetwork"),
    ],
    "cluster_network host_network provider",
    order="datacenter name",
)

_QUOTAS = define(
    "QUOTA",
    [
        *texts("name storagepoolname description"),
        *fields(Kind.INTEGER, "thresholdstoragepercentage thresholdclusterpercentage", COMPARED),
        *fields(Kind.INTEGER, "gracestoragepercentage graceclusterpercentage", COMPARED),
        word("enforcementtype", {"disabled": 0, "soft_enforcement": 1, "hard_enforcement": 2}),
    ],
)

_POOL = define(
    "POOL",
    [
        *texts("name comment description cluster datacenter"),
        word("type", words.POOL_TYPE),
        word("architecture", words.ARCHITECTURE),
        *fields(Kind.INTEGER, "assigned_vm_count running_vm_count"),
    ],
)

_INSTANCE_TYPE = msgspec.structs.replace(_TEMPLATE, name="INSTANCETYPE")
_JOB = define("JOB", fields(Kind.EXACT, "correlation_id"), order="start_time")
_NIC = define("NIC", texts("network_name mac"))
_VNIC = define("VNIC", texts("network_name mac"))
_CLUSTER_NETWORK = define("CLUSTER_NETWORK", texts("network_name cluster_name"))
_HOST_NETWORK = define("HOST_NETWORK", texts("host_name"))
_PROVIDER = define("PROVIDER", [*texts("name description url"), word("type", words.PROVIDER_TYPE)])
_VOLUME = define(
    "VOLUME",
    [
        *texts("name"),
        word("type", words.GLUSTER_TYPE),
        word("transport_type", words.GLUSTER_TRANSPORT),
        word("status", words.GLUSTER_STATUS),
        *fields(Kind.INTEGER, "replica_count stripe_count", COMPARED),
    ],
)

#: Every object by its name in the singular.
OBJECTS = {
    each.name: each
    for each in (
        _VM,
        _HOST,
        _CLUSTER,
        _DATA_CENTER,
        _TEMPLATE,
        _USER,
        _GROUP,
        _EVENT,
        _DISK,
        _STORAGE,
        _NETWORK,
        _QUOTAS,
        _POOL,
        _INSTANCE_TYPE,
        _JOB,
        _NIC,
        _VNIC,
        _CLUSTER_NETWORK,
        _HOST_NETWORK,
        _PROVIDER,
        _VOLUME,
    )
}
#: These have no plural that leads to their fields.
_WITHOUT_PLURAL = {"DATACENTER", "NIC", "VNIC", "CLUSTER_NETWORK", "HOST_NETWORK"}
_PLURALS = {f"{name}S": each for name, each in OBJECTS.items() if name not in _WITHOUT_PLURAL}

#: What the engine completes where an object could stand: every object that it can search, in any search.
COMPLETED_OBJECTS = split(
    "vms pools hosts templates events users groups clusters disks datacenter storage volumes quota networks "
    "providers instancetypes imagetypes sessions jobs vnicprofiles"
)


def find(word: str) -> SearchObject | None:
    """Give the object that a word names, in the singular or plural."""
    return OBJECTS.get(word) or _PLURALS.get(word)
