"""Clusters, and the change of a cluster's scheduling policy."""

from __future__ import annotations

from werkzeug import Response

from ovirt_simulator.core.entities import Cluster
from ovirt_simulator.http import answers
from ovirt_simulator.http.call import Call
from ovirt_simulator.http.links import Links
from ovirt_simulator.http.render import cluster as render
from ovirt_simulator.http.resources.find import present, visible_clusters
from ovirt_simulator.http.search import fields
from ovirt_simulator.http.search.select import select
from ovirt_simulator.http.users import Permit

_MANAGEMENT_NETWORK = "ovirtmgmt"


def list_clusters(call: Call) -> list[str]:
    found = select(visible_clusters(call), fields.clusters(call.queries), **call.search)
    return [render_cluster(call, cluster) for cluster in found]


def get_cluster(call: Call, cluster_id: str) -> str:
    visible = {cluster.id: cluster for cluster in visible_clusters(call)}
    return render_cluster(call, present(visible.get(cluster_id)))


def render_cluster(call: Call, cluster: Cluster, links: Links | None = None) -> str:
    network = None
    if call.all_content:
        network = next(
            (known.id for known in call.queries.networks() if known.name == _MANAGEMENT_NETWORK), None
        )
    return render.cluster(cluster, links or call.links("clusters", cluster.id), management_network=network)


def put_cluster(call: Call, cluster_id: str) -> Response:
    """Change policy, properties, HA reservation or description; the rest of a body is read past."""
    present(call.queries.cluster(cluster_id))
    body = call.body("cluster")
    call.need(Permit.EDIT_CLUSTER_CONFIGURATION)
    policy = body.child("scheduling_policy")
    cluster = call.engine.policies.update_cluster(
        cluster_id,
        policy_id=None if policy is None else policy.id,
        policy_name=None if policy is None else policy.text("name"),
        properties=body.properties("custom_scheduling_policy_properties"),
        ha_reservation=body.boolean("ha_reservation"),
        description=body.text("description"),
        caller=call.caller,
    )
    return answers.document(render_cluster(call, cluster, call.plain_links("clusters", cluster_id)))
