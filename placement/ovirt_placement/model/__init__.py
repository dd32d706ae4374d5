"""The placement state of an engine: immutable records, with the field names of the cluster state file.

Memory is in MiB, utilisation in percent, ids are opaque strings.
"""

from ovirt_placement.model.infrastructure import AffinityGroup as AffinityGroup
from ovirt_placement.model.infrastructure import AffinityLabel as AffinityLabel
from ovirt_placement.model.infrastructure import AffinityRule as AffinityRule
from ovirt_placement.model.infrastructure import Cluster as Cluster
from ovirt_placement.model.infrastructure import DataCenter as DataCenter
from ovirt_placement.model.infrastructure import Disk as Disk
from ovirt_placement.model.infrastructure import Host as Host
from ovirt_placement.model.infrastructure import Network as Network
from ovirt_placement.model.infrastructure import Nic as Nic
from ovirt_placement.model.infrastructure import SchedulingPolicy as SchedulingPolicy
from ovirt_placement.model.infrastructure import Vm as Vm
from ovirt_placement.model.infrastructure import VnicProfile as VnicProfile
from ovirt_placement.model.record import FrozenKeys as FrozenKeys
from ovirt_placement.model.record import MemberSearch as MemberSearch
from ovirt_placement.model.record import PlacementKey as PlacementKey
from ovirt_placement.model.record import PlacementRule as PlacementRule
from ovirt_placement.model.record import RuleDomain as RuleDomain
from ovirt_placement.model.record import StickyCopy as StickyCopy
from ovirt_placement.model.record import Struct as Struct
from ovirt_placement.model.snapshot import NO_STATE as NO_STATE
from ovirt_placement.model.snapshot import Pending as Pending
from ovirt_placement.model.snapshot import Snapshot as Snapshot
