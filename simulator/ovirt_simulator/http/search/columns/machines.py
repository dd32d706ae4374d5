"""What is known of VMs and their NICs, hosts, templates and types of instances."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ovirt_placement.model import Nic
from ovirt_simulator.core.entities import Host, Vm
from ovirt_simulator.core.images import Template
from ovirt_simulator.core.instance_type import InstanceType
from ovirt_simulator.core.vm_pool import VmPool
from ovirt_simulator.http.search.columns.column import (
    ARCHITECTURE,
    Columns,
    always,
    name,
    percent,
    word,
)
from ovirt_simulator.http.search.columns.lookup import Lookup

_CPU_MODEL = "Intel Xeon Processor (Skylake)"
_SPEED_MHZ = 2100


def vm(state: Lookup) -> Columns:
    columns: dict[str, Callable[[Vm], Any]] = {
        "ID": lambda vm: vm.id,
        "NAME": name,
        "DESCRIPTION": lambda vm: vm.description,
        "COMMENT": lambda vm: vm.particulars.comment,
        "STATUS": lambda vm: vm.engine_status,
        "ON_HOST": lambda vm: state.host_name(vm.host),
        "CLUSTER": lambda vm: state.cluster_name(vm.cluster),
        "COMPATIBILITY_LEVEL": lambda vm: state.compatibility(vm.cluster),
        "DATACENTER": lambda vm: state.data_center(vm.cluster),
        "UPTIME": state.uptime,
        "OS": lambda vm: vm.particulars.os,
        "TYPE": lambda vm: word(vm.particulars.type),
        "ARCHITECTURE": always(ARCHITECTURE),
        "BIOS_TYPE": always("q35_sea_bios"),
        # The engine's views have neither for a VM without a next run, and without disks.
        "NEXT_RUN_CONFIG_EXISTS": lambda vm: None if vm.next_run is None else True,
        "HAS_ILLEGAL_IMAGES": lambda vm: False if vm.disks else None,
        "CREATIONDATE": lambda vm: vm.created,
        "MEMORY": lambda vm: vm.memory_mb,
        "GUARANTEED_MEMORY": lambda vm: vm.guaranteed_mb,
        "VCPUS": lambda vm: vm.vcpus,
        "CPU_USAGE": lambda vm: percent(vm.usage_cpu_percent) if vm.runs else 0,
        "MEM_USAGE": lambda vm: percent(vm.usage_mem_percent) if vm.runs else 0,
        "NETWORK_USAGE": always(0),
        "MIGRATION_PROGRESS_PERCENT": lambda vm: vm.migration_progress,
        "QUOTA": lambda vm: vm.quota,
        "POOL": state.pool_name,
    }
    return columns


def host(state: Lookup) -> Columns:
    columns: dict[str, Callable[[Host], Any]] = {
        "ID": lambda host: host.id,
        "NAME": name,
        "COMMENT": lambda host: host.comment,
        "STATUS": lambda host: word(host.status),
        "EXTERNAL_STATUS": lambda host: host.external_status,
        "CLUSTER": lambda host: state.cluster_name(host.cluster),
        "DATACENTER": lambda host: state.data_center(host.cluster),
        "ADDRESS": lambda host: host.address,
        "VERSION": always("4.50"),
        "CPU_MODEL": always(_CPU_MODEL),
        "CPU_SPEED": always(_SPEED_MHZ),
        "CPUS": lambda host: host.cores,
        "MEMORY": lambda host: host.memory_mb,
        "CPU_USAGE": lambda host: percent(host.cpu_percent),
        "MEM_USAGE": state.memory_percent,
        "NETWORK_USAGE": always(0),
        "LOAD": lambda host: state.statistic(host, "cpu.load.avg.5m") * 100,
        "ACTIVE_VMS": lambda host: state.summary(host).active,
        "MIGRATING_VMS": lambda host: state.summary(host).migrating,
        "COMMITTED_MEM": state.committed_mb,
        "TYPE": always("rhel"),
        "ARCHITECTURE": always(ARCHITECTURE),
        "UPDATE_AVAILABLE": lambda host: host.update_available,
        "HA_SCORE": state.ha_score,
    }
    return columns


def template(state: Lookup) -> Columns:
    columns: dict[str, Callable[[Template], Any]] = {
        "_VMT_ID": lambda template: template.id,
        "NAME": name,
        "DESCRIPTION": lambda template: template.description,
        "COMMENT": lambda template: template.vm.particulars.comment,
        "CLUSTER": lambda template: state.cluster_name(template.vm.cluster),
        "DATACENTER": lambda template: state.data_center(template.vm.cluster),
        "OS": lambda template: template.vm.particulars.os,
        "STATUS": always("ok"),
        "SEALED": always(False),
        # The blank template belongs to no cluster, and has the architecture of none.
        "ARCHITECTURE": lambda template: ARCHITECTURE if template.vm.cluster else None,
        "VERSION_NAME": lambda template: template.version_name,
        "MEM": lambda template: template.vm.memory_mb,
        "CHILDCOUNT": state.vms_made_from,
        "CREATIONDATE": lambda template: template.created,
        "QUOTA": lambda template: template.vm.quota,
    }
    return columns


def pool(state: Lookup) -> Columns:
    columns: dict[str, Callable[[VmPool], Any]] = {
        "NAME": name,
        "DESCRIPTION": lambda pool: pool.description,
        "COMMENT": lambda pool: pool.comment,
        "CLUSTER": lambda pool: state.cluster_name(pool.cluster),
        "DATACENTER": lambda pool: state.data_center(pool.cluster),
        "TYPE": lambda pool: pool.type,
        "ARCHITECTURE": always(ARCHITECTURE),
        "ASSIGNED_VM_COUNT": lambda pool: len(state.vms_of(pool)),
        # The engine counts those that are not down, and holds nothing where all are.
        "RUNNING_VM_COUNT": lambda pool: sum(vm.status != "down" for vm in state.vms_of(pool)) or None,
    }
    return columns


def instance_type(_: Lookup) -> Columns:
    columns: dict[str, Callable[[InstanceType], Any]] = {
        "_VMT_ID": lambda instance_type: instance_type.id,
        "NAME": name,
        "STATUS": always("ok"),
    }
    return columns


def vnic(state: Lookup) -> Columns:
    columns: dict[str, Callable[[Nic], Any]] = {
        "NETWORK_NAME": lambda nic: state.network_of(nic.vnic_profile),
        "MAC": lambda nic: state.mac_address(nic.id),
    }
    return columns
