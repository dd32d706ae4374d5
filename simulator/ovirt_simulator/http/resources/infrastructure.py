"""Data centers, networks and vNIC profiles, read; the root of the API; and the engine's options."""

from __future__ import annotations

from ovirt_placement.model import Network, VnicProfile
from ovirt_simulator.core.entities import user_id
from ovirt_simulator.http.call import Call
from ovirt_simulator.http.render import infrastructure as render
from ovirt_simulator.http.render import root
from ovirt_simulator.http.resources.access import users
from ovirt_simulator.http.resources.clusters import render_cluster
from ovirt_simulator.http.resources.find import present, visible_clusters, visible_data_centers
from ovirt_simulator.http.search import searched


def get_api(call: Call) -> str:
    """Give the root: what this engine is, where its collections are, and how much they hold."""
    summary = None if call.filtered else _summary(call)
    return root.api(call.queries.now, summary=summary, user_id=user_id(call.user_name))


def _summary(call: Call) -> dict[str, tuple[int, int]]:
    """Count what is active and what there is of each type; the one who asks is the user who is logged in."""
    hosts, vms = call.queries.hosts(), call.queries.vms()
    return {
        "hosts": (sum(host.up for host in hosts), len(hosts)),
        "users": (1, len(users(call))),
        "vms": (sum(vm.status not in ("down", "suspended") for vm in vms), len(vms)),
    }


def list_data_centers(call: Call) -> list[str]:
    found = searched(call, "data centers", visible_data_centers(call))
    return [render.data_center(one, call.links("datacenters", one.id)) for one in found]


def get_data_center(call: Call, data_center_id: str) -> str:
    visible = {one.id: one for one in visible_data_centers(call)}
    found = present(visible.get(data_center_id))
    return render.data_center(found, call.links("datacenters", data_center_id))


def list_clusters(call: Call, data_center_id: str) -> list[str]:
    present(call.queries.data_center(data_center_id))
    return [
        render_cluster(call, cluster)
        for cluster in visible_clusters(call)
        if cluster.data_center == data_center_id
    ]


def list_networks(call: Call, **_: str) -> list[str]:
    """Give all networks: the state knows no others, and every data center and cluster has them."""
    return [_render_network(call, network) for network in searched(call, "networks", call.queries.networks())]


def get_network(call: Call, network_id: str) -> str:
    networks = {network.id: network for network in call.queries.networks()}
    return _render_network(call, present(networks.get(network_id)))


def _render_network(call: Call, network: Network) -> str:
    """Render a network; it belongs to the first data center, as far as the state can say."""
    data_center = next((each.id for each in call.queries.data_centers()), None)
    return render.network(network, call.links("networks", network.id), data_center=data_center)


def list_vnic_profiles(call: Call) -> list[str]:
    return [_render_profile(call, profile) for profile in call.queries.vnic_profiles()]


def list_vnic_profiles_of(call: Call, network_id: str) -> list[str]:
    profiles = call.queries.vnic_profiles()
    return [_render_profile(call, profile) for profile in profiles if profile.network == network_id]


def get_vnic_profile(call: Call, profile_id: str) -> str:
    profiles = {profile.id: profile for profile in call.queries.vnic_profiles()}
    return _render_profile(call, present(profiles.get(profile_id)))


def _render_profile(call: Call, profile: VnicProfile) -> str:
    return render.vnic_profile(profile, call.links("vnicprofiles", profile.id))
