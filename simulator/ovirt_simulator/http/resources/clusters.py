"""Clusters, and the change of a cluster's scheduling policy."""

from __future__ import annotations

from typing import Any

from werkzeug import Response

from ovirt_simulator.core.entities import Cluster, Job
from ovirt_simulator.http import answers, markup
from ovirt_simulator.http.answers import incomplete
from ovirt_simulator.http.bodies import Body
from ovirt_simulator.http.call import Call
from ovirt_simulator.http.links import Links
from ovirt_simulator.http.render import cluster as render
from ovirt_simulator.http.resources.actions import act, done
from ovirt_simulator.http.resources.find import named, present, visible_clusters
from ovirt_simulator.http.search import searched
from ovirt_simulator.http.users import Permit

_MANAGEMENT_NETWORK = "ovirtmgmt"


def list_clusters(call: Call) -> list[str]:
    return [render_cluster(call, cluster) for cluster in searched(call, "clusters", visible_clusters(call))]


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


def post_cluster(call: Call) -> Response:
    """Add a cluster to the data center that the body names by id or name."""
    body = call.body("cluster")
    name, data_center = body.text("name"), body.child("data_center")
    if not name:
        raise incomplete("Cluster", "name")
    if data_center is None:
        raise incomplete("Cluster", "dataCenter.name|id")
    call.need(Permit.EDIT_CLUSTER_CONFIGURATION)
    wanted = named(data_center, call.queries.data_centers())
    cluster = call.engine.policies.add_cluster(name, wanted, caller=call.caller)
    return answers.document(render_cluster(call, cluster, call.plain_links("clusters", cluster.id)), 201)


def delete_cluster(call: Call, cluster_id: str) -> Response:
    present(call.queries.cluster(cluster_id))
    call.need(Permit.EDIT_CLUSTER_CONFIGURATION)
    call.engine.policies.remove_cluster(cluster_id, caller=call.caller)
    return done()


def put_cluster(call: Call, cluster_id: str) -> Response:
    """Change name, policy, properties, HA reservation, memory or description."""
    present(call.queries.cluster(cluster_id))
    body = call.body("cluster")
    call.need(Permit.EDIT_CLUSTER_CONFIGURATION)
    cluster = call.engine.policies.update_cluster(
        cluster_id,
        name=body.text("name") or None,
        caller=call.caller,
        **_settings(body),
    )
    return answers.document(render_cluster(call, cluster, call.plain_links("clusters", cluster_id)))


def _settings(body: Body) -> dict[str, Any]:
    policy, memory = body.child("scheduling_policy"), body.child("memory_policy")
    over_commit = memory and memory.child("over_commit")
    return {
        "description": body.text("description"),
        "comment": body.text("comment"),
        "ha_reservation": body.boolean("ha_reservation"),
        "count_threads_as_cores": body.boolean("threads_as_cores"),
        "memory_overcommit_percent": over_commit and over_commit.integer("percent"),
        "policy_id": None if policy is None else policy.id,
        "policy_name": None if policy is None else policy.text("name"),
        "properties": body.properties("custom_scheduling_policy_properties"),
    }


def upgrade(call: Call, cluster_id: str) -> Response:
    """Mark the cluster as being upgraded, say how far that is, or take the mark away."""
    present(call.queries.cluster(cluster_id))

    def command(body: Body) -> Job:
        upgrades, wanted = call.engine.upgrades, body.text("upgrade_action")
        if wanted == "start":
            return upgrades.start(cluster_id, caller=call.caller)
        if wanted == "update_progress":
            percent = body.integer("upgrade_percent_complete") or 0
            return upgrades.progress(cluster_id, percent, caller=call.caller)
        return upgrades.finish(cluster_id, caller=call.caller)

    subject = f'<cluster href="{markup.path("clusters", cluster_id)}" id="{markup.attribute(cluster_id)}"/>'
    return act(call, Permit.EDIT_CLUSTER_CONFIGURATION, "cluster", subject, command)
