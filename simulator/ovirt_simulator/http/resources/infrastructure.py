"""Networks and vNIC profiles, read; the clusters of a data center; and the root of the API."""

from __future__ import annotations

from ovirt_placement.model import Network, VnicProfile
from ovirt_simulator.core.entities import user_id
from ovirt_simulator.http.call import Call
from ovirt_simulator.http.render import infrastructure as render
from ovirt_simulator.http.render import root
from ovirt_simulator.http.resources.clusters import render_cluster
from ovirt_simulator.http.resources.find import present, visible_clusters
from ovirt_simulator.http.resources.searching import known, searched


def get_api(call: Call) -> str:
    """Give the root: what this engine is, where its collections are, and how much they hold."""
    queries = call.queries
    return root.api(
        queries.now,
        summary=None if call.filtered else _summary(call),
        user_id=user_id(call.user_name),
    )


def _summary(call: Call) -> dict[str, tuple[int, int]]:
    """Count what is active and what there is of each type; the one who asks is the user who is logged in."""
    hosts, vms, others = call.queries.hosts(), call.queries.vms(), known(call)
    return {
        "hosts": (sum(host.up for host in hosts), len(hosts)),
        "storage_domains": (len(others.storage), len(others.storage)),
        "users": (1, len(others.users)),
        "vms": (sum(vm.status not in ("down", "suspended") for vm in vms), len(vms)),
    }


def list_clusters(call: Call, data_center_id: str) -> list[str]:
    present(call.queries.data_center(data_center_id))
    return [
        render_cluster(call, cluster)
        for cluster in visible_clusters(call)
        if cluster.data_center == data_center_id
    ]


def get_cluster(call: Call, data_center_id: str, cluster_id: str) -> str:
    found = {cluster.id: cluster for cluster in visible_clusters(call)}
    cluster = present(found.get(cluster_id))
    return render_cluster(call, present(cluster if cluster.data_center == data_center_id else None))


def list_networks(call: Call) -> list[str]:
    return [_render_network(call, network) for network in searched(call, "NETWORK", call.queries.networks())]


def list_networks_of(call: Call, **_: str) -> list[str]:
    """Give all networks: the state knows no others, and every data center has them."""
    return [_render_network(call, network) for network in call.queries.networks()]


def get_network(call: Call, network_id: str, **_: str) -> str:
    networks = {network.id: network for network in call.queries.networks()}
    return _render_network(call, present(networks.get(network_id)))


def _render_network(call: Call, network: Network) -> str:
    """Render a network; it belongs to the first data center, as far as the state can say."""
    data_center = next((each.id for each in call.queries.data_centers()), None)
    return render.network(network, call.links("networks", network.id), data_center=data_center)


def list_vnic_profiles(call: Call) -> list[str]:
    """Give all profiles. Any search finds none: the engine's API asks it of an object that there is not."""
    if call.parameter("search") is not None and not call.followed:
        return []
    return [_render_profile(call, profile) for profile in call.queries.vnic_profiles()]


def list_vnic_profiles_of(call: Call, network_id: str) -> list[str]:
    profiles = call.queries.vnic_profiles()
    return [_render_profile(call, profile) for profile in profiles if profile.network == network_id]


def get_vnic_profile(call: Call, profile_id: str, **_: str) -> str:
    profiles = {profile.id: profile for profile in call.queries.vnic_profiles()}
    return _render_profile(call, present(profiles.get(profile_id)))


def _render_profile(call: Call, profile: VnicProfile) -> str:
    return render.vnic_profile(profile, call.links("vnicprofiles", profile.id))
