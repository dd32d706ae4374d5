"""A state file that uses every list, and optional keys of every kind."""

import json
from typing import Any

from ovirt_placement.model import state_file

OFF = {"enabled": False, "positive": False, "enforcing": False}
State = dict[str, Any]


def full_state() -> State:
    """A state that uses every list, and optional keys of every kind."""
    return {
        "format": 1,
        "data_centers": [{"id": "dc", "name": "dc", "local_storage": True}],
        "clusters": [
            {
                "id": "c", "name": "c", "ha_reservation": True, "data_center": "dc", "compatibility": "4.6",
                "policy": {"vm_affinity_weight": 1}, "scheduling_properties": {"a": "b"},
                "scheduling_policy": {"filters": ["AffinityFilter"], "weights": {"W": 2}, "balance": "B"},
            }
        ],
        "hosts": [
            {
                "id": "h", "name": "h", "cluster": "c", "status": "up", "memory_mb": 1024, "free_mb": 512,
                "cpu_percent": 12.5, "cores": 4, "threads": 8, "memory_free_mb": 100, "failover": True,
                "load_average_5m": 6.5, "swap_free_mb": 5, "free_huge_pages": {"2048": 3}, "spm": True,
                "tags": ["t"],
            }
        ],
        "vms": [
            {
                "id": "v", "name": "v", "cluster": "c", "host": "h", "status": "migrating", "memory_mb": 256,
                "guaranteed_mb": 128, "usage_mem_percent": None, "usage_cpu_percent": 3, "vcpus": 2,
                "ha": True, "migratable": True, "hosted_engine": False, "ha_priority": 50,
                "migrating_to": "h",
                "pinned_hosts": ["h"], "threads_per_core": 2, "io_threads": 2, "video_mb": 16,
                "architecture": "ppc64le", "max_memory_mb": 512,
                "custom_properties": {"k": "v"}, "disks": [{"id": "d", "bootable": True, "profile": "p"}],
                "nics": [{"id": "n", "name": "nic1", "vnic_profile": "vp"}], "owner": "o",
            }
        ],
        "networks": [{"id": "net", "name": "net"}],
        "vnic_profiles": [{"id": "vp", "name": "vp", "network": "net"}],
        "affinity_groups": [
            {
                "id": "g", "name": "g", "cluster": "c", "priority": 1.5,
                "vms_rule": {"enabled": True, "positive": False, "enforcing": True}, "hosts_rule": dict(OFF),
                "vms": ["v"], "hosts": ["h"], "vm_labels": ["l"], "host_labels": ["l"],
            }
        ],
        "affinity_labels": [{"id": "l", "name": "l", "vms": ["v"], "hosts": ["h"], "implicit": True}],
        "pending": [{"vm": "v", "host": "h", "memory_mb": 1}],
        "placement_keys": [
            {"level": "node", "resource": "h", "class": "system", "name": "k", "value": 1.0, "weight": 2.0}
        ],
        "frozen_keys": [{"vm": "v", "keys": [["k", 1.0]]}],
        "sticky_copies": [{"vm": "v", "name": "k", "value": 1.0, "weight": 1.0}],
        "placement_rules": [
            {
                "name": "r", "kind": "at_most_per_domain", "cluster": "c",
                "vms": ["tag:t"], "other_vms": ["v"],
                "hosts": ["h"], "domain_tags": ["rack"], "domains": [{"name": "d", "hosts": ["h"]}],
                "most": 1, "least": 2, "max_skew": 3, "min_domains": 4, "counted": "vcpus",
                "enforcing": False, "priority": 2.0, "continuous": False, "enabled": False,
            }
        ],
    }  # fmt: skip


def loaded(state: State) -> Any:
    return state_file.loads(json.dumps(state).encode())
