"""The engine's own weights whose answers we can compute, each once, with what its shipped policies say.

Some distinguish hosts only by what is not part of the state, and say 1 of each. They still count: the first
unit in the selector's table decides in which order it comes upon equal hosts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ovirt_placement.model import Snapshot
from ovirt_placement.rules.built_in.affinity import score_by_host_groups, score_by_vm_groups
from ovirt_placement.rules.built_in.weights import score_by_ha_vms, score_by_preference, summed
from ovirt_placement.rules.elements.verdict import Request
from ovirt_placement.rules.load import score_by_cpu, score_by_memory


class EnginesWeight(NamedTuple):
    """One of them."""

    #: By which a cluster's state knows its factor.
    name: str
    #: The id of its unit.
    unit: str
    #: The factor that it has in the policies which the engine ships.
    factor: int
    #: Its weight of each candidate host, in the order in which it lists them; hosts may be left out.
    scores: Callable[[Snapshot, Request], dict[str, int]]


def _alike(snapshot: Snapshot, request: Request) -> dict[str, int]:
    """What a weight says that sees no difference, of all VMs together."""
    return dict.fromkeys(request.candidate_hosts, 1)


def _alike_to_each(snapshot: Snapshot, request: Request) -> dict[str, int]:
    """The same of a weight that is asked VM by VM."""
    return summed(dict.fromkeys(request.candidate_hosts, 1) for _ in request.vms)


#: Source: InternalPolicyUnits, InternalClusterPolicies.
ENGINES_WEIGHTS = (
    EnginesWeight("even_cpu_weight", "7db4ab05-81ab-42e8-868a-aee2df483edb", 2, score_by_cpu),
    EnginesWeight("even_memory_weight", "4134247a-9c58-4b9a-8593-530bb9e37c59", 1, score_by_memory),
    EnginesWeight("preferred_hosts_weight", "591cdb81-ba67-45b4-9642-e28f61a97d57", 99, score_by_preference),
    EnginesWeight("ha_weight", "7f262d70-6cac-11e3-981f-0800200c9a66", 1, score_by_ha_vms),
    EnginesWeight("vm_affinity_weight", "84e6ddee-ab0d-42dd-82f0-c297779db567", 1, score_by_vm_groups),
    EnginesWeight("vm_to_host_weight", "427aed70-dae3-48ba-8fe9-a902a9d563c8", 20, score_by_host_groups),
    # HostedEngineHAClusterWeightPolicyUnit: the scores of hosts, for the engine's own VM alone.
    EnginesWeight("HA", "98e92667-6161-41fb-b3fa-34f820ccbc4b", 1, _alike),
    # HighPerformanceCpuPolicyUnit: sockets and cores, for VMs that are pinned or of high performance.
    EnginesWeight("CPU for high performance VMs", "71931e14-f0e6-4f91-a7c8-d494a26e3a09", 4, _alike_to_each),
    # CpuAndNumaPinningWeightPolicyUnit: NUMA nodes, for VMs that are pinned to some.
    EnginesWeight("CPU and NUMA pinning compatibility", "1b14ac11-20e9-4593-a149-2eb83c60a330", 5, _alike),
)
