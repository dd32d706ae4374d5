"""The placement state of an engine: immutable records, with the field names of the cluster state file.

Memory is in MiB, utilisation in percent, ids are opaque strings.
"""

from ovirt_placement.model.infrastructure import (
    AffinityGroup,
    AffinityLabel,
    AffinityRule,
    Cluster,
    DataCenter,
    Disk,
    Host,
    Network,
    Nic,
    SchedulingPolicy,
    Vm,
    VnicProfile,
)
from ovirt_placement.model.record import (
    FrozenKeys,
    MemberSearch,
    PlacementKey,
    PlacementRule,
    RuleDomain,
    StickyCopy,
    Struct,
)
from ovirt_placement.model.snapshot import NO_STATE, Pending, Snapshot

__all__ = [
    "NO_STATE",
    "AffinityGroup",
    "AffinityLabel",
    "AffinityRule",
    "Cluster",
    "DataCenter",
    "Disk",
    "FrozenKeys",
    "Host",
    "MemberSearch",
    "Network",
    "Nic",
    "Pending",
    "PlacementKey",
    "PlacementRule",
    "RuleDomain",
    "SchedulingPolicy",
    "Snapshot",
    "StickyCopy",
    "Struct",
    "Vm",
    "VnicProfile",
]
