"""Data centers, networks, vNIC profiles and jobs, read; and the root of the API."""

from __future__ import annotations

from ovirt_placement.model import Network, VnicProfile
from ovirt_simulator.core.entities import DataCenter
from ovirt_simulator.http.call import Call
from ovirt_simulator.http.render import event, root
from ovirt_simulator.http.render import infrastructure as render
from ovirt_simulator.http.resources.clusters import render_cluster
from ovirt_simulator.http.resources.find import present, visible_clusters
from ovirt_simulator.http.resources.permissions import user_id
from ovirt_simulator.http.search import fields
from ovirt_simulator.http.search.select import select

#: Of a data center that no cluster belongs to.
_COMPATIBILITY = "4.7"


def get_api(call: Call) -> str:
    """Give the root: what this engine is, where its collections are, and how much they hold."""
    queries = call.queries
    hosts, vms = queries.hosts(), queries.vms()
    active = sum(vm.status not in ("down", "suspended") for vm in vms)
    return root.api(
        queries.now,
        hosts=(sum(host.up for host in hosts), len(hosts)),
        vms=(active, len(vms)),
        user=call.user_name,
        user_id=user_id(call.user_name),
    )


def list_data_centers(call: Call) -> list[str]:
    found = select(call.queries.data_centers(), fields.data_centers(), **call.search)
    return [_render_data_center(call, data_center) for data_center in found]


def get_data_center(call: Call, data_center_id: str) -> str:
    return _render_data_center(call, present(call.queries.data_center(data_center_id)))


def _render_data_center(call: Call, data_center: DataCenter) -> str:
    versions = [each.compatibility for each in call.queries.clusters() if each.data_center == data_center.id]
    compatibility = min(versions, default=_COMPATIBILITY)
    return render.data_center(
        data_center, call.links("datacenters", data_center.id), compatibility=compatibility
    )


def list_clusters(call: Call, data_center_id: str) -> list[str]:
    present(call.queries.data_center(data_center_id))
    return [
        render_cluster(call, cluster)
        for cluster in visible_clusters(call)
        if cluster.data_center == data_center_id
    ]


def list_networks(call: Call, **_: str) -> list[str]:
    """Give all networks: the state knows no others, and every cluster and data center has them."""
    found = select(call.queries.networks(), fields.networks(), **call.search)
    return [_render_network(call, network) for network in found]


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


def list_jobs(call: Call) -> list[str]:
    return [event.job(job, call.links("jobs", job.id)) for job in call.queries.jobs()]


def get_job(call: Call, job_id: str) -> str:
    return event.job(present(call.queries.job(job_id)), call.links("jobs", job_id))
