"""What clusters may be and become: compatibility version, CPU type, services, memory, firmware.

Source: the engine's ClusterValidator, in the order of AddClusterCommand and UpdateClusterCommand. The hosts
here support all versions, and have the CPU of `cpu_types.of_hosts`; nothing previews snapshots or isolates
ports.
"""

from __future__ import annotations

from . import cluster_refusals as refusals
from . import compatibility, cpu_types
from .cluster_cpu import cpu_architecture
from .entities import Cluster, Host
from .state import State

#: In these the engine asks of hosts that they have what a new CPU type needs.
_ACTIVE = ("up", "preparing_for_maintenance")
_LABELS_ACT_NO_MORE = (4, 4)
_FIRMWARE_IS_CHOSEN = (4, 3)


def check_added(state: State, cluster: Cluster) -> None:
    """Refuse a cluster that cannot be added."""
    data_center = state.data_centers[cluster.data_center or ""]
    if _serves_vms(cluster) and not _cpu_exists(cluster) and cluster.cpu_type:
        raise refusals.cpu_unknown()
    _check_supported(cluster, "create")
    version, lowest = (compatibility.ordered(each.compatibility) for each in (cluster, data_center))
    if _serves_vms(cluster) and lowest > version:
        raise refusals.version_below_data_center()
    others = (each.data_center for each in state.clusters.values() if each.id != cluster.id)
    if data_center.local_storage and data_center.id in others:
        raise refusals.one_cluster_of_local_storage()
    _check_services(cluster)


def check_added_at_last(cluster: Cluster) -> None:
    """Refuse what is looked at when the scheduling policy of an added cluster is found to be right."""
    _check_memory(cluster)
    _check_firmware(cluster)


def check_changed(state: State, before: Cluster, after: Cluster) -> None:
    """Refuse a change of a cluster, whose hosts and VMs are what they are."""
    _check_supported(after, "edit")
    old, new = (compatibility.ordered(each.compatibility) for each in (before, after))
    if new < old and _hosts(state, before):
        raise refusals.version_below_hosts()
    if before.data_center is not None and after.data_center != before.data_center:
        raise refusals.other_data_center()
    if _serves_vms(after):
        _check_cpu(state, before, after)
    _check_detection(state, before, after)
    _check_active_hosts(state, after)
    _check_suspended(state, before, after)
    _check_services(after)
    if not _serves_vms(after) and _has_vms(state, before):
        raise refusals.virt_with_vms()
    _check_firmware(after)
    if new >= _LABELS_ACT_NO_MORE and _implicit_labels(state, before):
        raise refusals.implicit_labels()


def check_changed_at_last(state: State, before: Cluster, after: Cluster) -> None:
    """Refuse what is looked at when the scheduling policy of a changed cluster is found to be right."""
    _check_memory(after)
    changed = before.others.get("fips_mode", "disabled") != after.others.get("fips_mode", "disabled")
    if changed and any(host.status != "maintenance" for host in _hosts(state, before)):
        raise refusals.fips_with_hosts()


def _check_supported(cluster: Cluster, action: str) -> None:
    if cluster.compatibility not in compatibility.LEVELS:
        raise compatibility.unsupported(action, "Cluster")


def _check_cpu(state: State, before: Cluster, after: Cluster) -> None:
    """Refuse a CPU that there is not, or of another make; one that an upgrade leaves behind is replaced."""
    if _left_behind(before, after):
        return
    old, new = (cpu_types.find(each.cpu_type, after.compatibility) for each in (before, after))
    if new is None and (before.cpu_type or after.cpu_type):
        raise refusals.cpu_illegal()
    away = all(host.status == "maintenance" for host in _hosts(state, before))
    if old is not None and new is not None and old.vendor != new.vendor and not away:
        raise refusals.cpu_illegal()
    other = cpu_architecture(after) != cpu_architecture(before) != "undefined"
    if other and (_has_vms(state, before) or _hosts(state, before)):
        raise refusals.architecture_illegal()


def _left_behind(before: Cluster, after: Cluster) -> bool:
    """Say whether the version changes, and the CPU, old or new, is none that the new one has."""
    if before.compatibility == after.compatibility:
        return False
    return not _cpu_exists(after) or (
        _cpu_exists(before) and cpu_types.find(before.cpu_type, after.compatibility) is None
    )


def _check_detection(state: State, before: Cluster, after: Cluster) -> None:
    inhabited = _has_vms(state, before) or bool(_hosts(state, before))
    if before.cpu_type and not after.cpu_type and inhabited:
        raise refusals.cpu_detected_only_when_empty()


def _check_active_hosts(state: State, after: Cluster) -> None:
    wanted = cpu_types.find(after.cpu_type, after.compatibility)
    if wanted is None or not _serves_vms(after) or cpu_types.hosts_have(wanted, after.compatibility):
        return
    if active := [host.name for host in _hosts(state, after) if host.status in _ACTIVE]:
        raise refusals.cpu_above_hosts(active)


def _check_suspended(state: State, before: Cluster, after: Cluster) -> None:
    """Refuse another CPU while a VM is suspended, unless the engine comes upon one that runs first."""
    if before.cpu_type == after.cpu_type:
        return
    statuses = (vm.status for vm in state.vms.values() if vm.cluster == before.id and vm.status != "down")
    if next(statuses, None) == "suspended":
        raise refusals.cpu_with_suspended_vms()


def _check_services(cluster: Cluster) -> None:
    if not _serves_vms(cluster) and cluster.others.get("gluster_service") != "true":
        raise refusals.no_service()
    if cluster.others.get("trusted_service") == "true":
        raise refusals.no_attestation_server()


def _check_memory(cluster: Cluster) -> None:
    means = (cluster.others.get(path, "true") for path in ("ksm/enabled", "ballooning_enabled"))
    if cluster.memory_overcommit_percent > 100 and "true" not in means:
        raise refusals.overcommit_without_means()


def _check_firmware(cluster: Cluster) -> None:
    chosen = cluster.others.get("bios_type", "cluster_default")
    usual = chosen in ("cluster_default", "i440fx_sea_bios")
    supported = compatibility.ordered(cluster.compatibility) >= _FIRMWARE_IS_CHOSEN
    if supported and not usual and cpu_architecture(cluster) != "x86_64":
        raise refusals.bios_of_x86_only()


def _implicit_labels(state: State, cluster: Cluster) -> bool:
    members = {vm.id for vm in state.vms.values() if vm.cluster == cluster.id}
    members |= {host.id for host in _hosts(state, cluster)}
    return any(
        label.implicit and not members.isdisjoint((*label.vms, *label.hosts))
        for label in state.labels.values()
    )


def _cpu_exists(cluster: Cluster) -> bool:
    return cpu_types.find(cluster.cpu_type, cluster.compatibility) is not None


def _serves_vms(cluster: Cluster) -> bool:
    return cluster.others.get("virt_service", "true") == "true"


def _hosts(state: State, cluster: Cluster) -> tuple[Host, ...]:
    return state.hosts_of(cluster.id)


def _has_vms(state: State, cluster: Cluster) -> bool:
    return any(vm.cluster == cluster.id for vm in state.vms.values())
