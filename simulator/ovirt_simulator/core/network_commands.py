"""Networks of clusters: attached and detached. No host of the simulator has any, so nothing follows from it.

Source: the engine's AttachNetworkToClusterInternalCommand and DetachNetworkToClusterInternalCommand.
"""

from __future__ import annotations

from msgspec.structs import replace

from .backend import Backend
from .entities import ADMIN, Caller, Cluster
from .event_codes import EventCode, EventType
from .refusals import conflict
from .rejections import NotFound
from .state import State

MANAGEMENT_NETWORK = "ovirtmgmt"


def networks_of(state: State, cluster: Cluster) -> dict[str, bool]:
    """Give the ids of a cluster's networks, with whether its hosts must have them."""
    if cluster.networks is not None:
        return cluster.networks
    return {network.id: network.name == MANAGEMENT_NETWORK for network in state.networks.values()}


class NetworkCommands:
    """Commands on networks of clusters; all raise `Rejected` or `NotFound`."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._state = backend.state

    def attach(
        self, cluster_id: str, network_id: str, *, required: bool = True, caller: Caller = ADMIN
    ) -> None:
        """Give a cluster a network that it has not."""
        with self._backend.lock:
            cluster = self._known(cluster_id, network_id)
            present = networks_of(self._state, cluster)
            if network_id in present:
                raise conflict(
                    "NETWORK_ALREADY_ATTACHED_TO_CLUSTER", "Logical Network is already attached to Cluster."
                )
            self._put(cluster, present | {network_id: required})
            self._log(EventCode.NETWORK_ATTACH_NETWORK_TO_CLUSTER, cluster, network_id, caller)

    def require(self, cluster_id: str, network_id: str, *, required: bool) -> None:
        """Say whether a cluster's hosts must have a network, which no event reports."""
        with self._backend.lock:
            cluster = self._known(cluster_id, network_id)
            self._put(cluster, networks_of(self._state, cluster) | {network_id: required})

    def detach(self, cluster_id: str, network_id: str, *, caller: Caller = ADMIN) -> None:
        """Take a network from a cluster; not the one that the engine reaches the hosts by."""
        with self._backend.lock:
            cluster = self._known(cluster_id, network_id)
            name = self._state.networks[network_id].name
            if name == MANAGEMENT_NETWORK:
                raise conflict(
                    "NETWORK_CANNOT_REMOVE_MANAGEMENT_NETWORK",
                    f"The Management Network ('{name}') is mandatory and cannot be removed.",
                )
            present = networks_of(self._state, cluster)
            self._put(cluster, {each: must for each, must in present.items() if each != network_id})
            self._log(EventCode.NETWORK_DETACH_NETWORK_TO_CLUSTER, cluster, network_id, caller)

    def _known(self, cluster_id: str, network_id: str) -> Cluster:
        cluster = self._state.clusters.get(cluster_id)
        if cluster is None or network_id not in self._state.networks:
            raise NotFound(cluster_id if cluster is None else network_id)
        return cluster

    def _put(self, cluster: Cluster, networks: dict[str, bool]) -> None:
        self._state.put(self._state.clusters, replace(cluster, networks=networks))

    def _log(self, code: EventType, cluster: Cluster, network_id: str, caller: Caller) -> None:
        words = {"network": self._state.networks[network_id].name}
        self._backend.audit_log.log(code, caller, cluster=cluster, words=words)
