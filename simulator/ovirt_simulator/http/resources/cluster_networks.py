"""Networks of clusters: those of the state file's clusters are all that there are."""

from __future__ import annotations

from werkzeug import Response

from ovirt_placement.model import Network
from ovirt_simulator.core.entities import Cluster
from ovirt_simulator.http import answers
from ovirt_simulator.http.answers import incomplete
from ovirt_simulator.http.call import Call
from ovirt_simulator.http.links import Links
from ovirt_simulator.http.render import infrastructure as render
from ovirt_simulator.http.resources.actions import done
from ovirt_simulator.http.resources.find import named, present, visible_clusters
from ovirt_simulator.http.users import Permit


def list_all(call: Call, cluster_id: str) -> list[str]:
    return [
        _render(call, cluster_id, network_id, call.links("networks", network_id))
        for network_id in call.queries.networks_of(_cluster(call, cluster_id))
    ]


def get(call: Call, cluster_id: str, network_id: str) -> str:
    _attached(call, cluster_id, network_id)
    return _render(call, cluster_id, network_id, call.links("networks", network_id))


def post(call: Call, cluster_id: str) -> Response:
    """Attach a network that the body names by id or name; hosts must have it unless the body says not."""
    _cluster(call, cluster_id)
    body = call.body("network")
    if body.id is None and not body.text("name"):
        raise incomplete("Network", "id|name")
    network_id = named(body, call.queries.networks())
    call.need(Permit.ASSIGN_CLUSTER_NETWORK)
    required = body.boolean("required") is not False
    call.engine.networks.attach(cluster_id, network_id, required=required, caller=call.caller)
    return _shown(call, cluster_id, network_id, 201)


def put(call: Call, cluster_id: str, network_id: str) -> Response:
    """Change whether hosts must have the network."""
    _attached(call, cluster_id, network_id)
    required = call.body("network").boolean("required")
    call.need(Permit.CONFIGURE_CLUSTER_NETWORK)
    if required is not None:
        call.engine.networks.require(cluster_id, network_id, required=required)
    return _shown(call, cluster_id, network_id, 200)


def delete(call: Call, cluster_id: str, network_id: str) -> Response:
    _attached(call, cluster_id, network_id)
    call.need(Permit.ASSIGN_CLUSTER_NETWORK)
    call.engine.networks.detach(cluster_id, network_id, caller=call.caller)
    return done()


def _cluster(call: Call, cluster_id: str) -> Cluster:
    return present(next((one for one in visible_clusters(call) if one.id == cluster_id), None))


def _attached(call: Call, cluster_id: str, network_id: str) -> None:
    networks = call.queries.networks_of(_cluster(call, cluster_id))
    present(network_id if network_id in networks else None)


def _shown(call: Call, cluster_id: str, network_id: str, status: int) -> Response:
    links = call.plain_links("networks", network_id)
    return answers.document(_render(call, cluster_id, network_id, links), status)


def _render(call: Call, cluster_id: str, network_id: str, links: Links) -> str:
    """Render a network as its cluster has it."""
    cluster = _cluster(call, cluster_id)
    networks: dict[str, Network] = {network.id: network for network in call.queries.networks()}
    return render.network(
        networks[network_id],
        links,
        data_center=cluster.data_center,
        cluster=cluster_id,
        required=call.queries.networks_of(cluster)[network_id],
    )
