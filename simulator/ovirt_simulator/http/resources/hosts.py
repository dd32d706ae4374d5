"""Hosts and their sub-collections; hosts that come, change and go."""

from __future__ import annotations

from werkzeug import Response

from ovirt_simulator.core import compatibility, cpu_types
from ovirt_simulator.core.entities import Host
from ovirt_simulator.http import answers, markup
from ovirt_simulator.http.answers import incomplete
from ovirt_simulator.http.bodies import Body
from ovirt_simulator.http.call import Call
from ovirt_simulator.http.render import host as render
from ovirt_simulator.http.resources.actions import done
from ovirt_simulator.http.resources.find import cluster_id, present
from ovirt_simulator.http.resources.host_bodies import host_edit, installing
from ovirt_simulator.http.resources.searching import searched
from ovirt_simulator.http.users import Permit

#: Where a host goes of which nobody says where.
_DEFAULT_CLUSTER = b"<cluster><name>Default</name></cluster>"


def list_hosts(call: Call) -> list[str]:
    """Hosts that a search finds, or that VMs can migrate to; users whose queries are filtered see none."""
    if call.filtered:
        return []
    targets_of = call.parameter("migration_target_of")
    if targets_of is not None and not call.followed:
        vm_ids = [vm_id.strip() for vm_id in targets_of.split(",")]
        closure = bool(call.flag("check_vms_in_affinity_closure"))
        targets = call.queries.migration_targets(vm_ids, closure=closure)
        return [render_host(call, host) for host in targets]
    return [render_host(call, host) for host in searched(call, "HOST", call.queries.hosts())]


def get_host(call: Call, host_id: str) -> str:
    return render_host(call, visible_host(call, host_id))


def visible_host(call: Call, host_id: str) -> Host:
    return present(None if call.filtered else call.queries.host(host_id))


def render_host(call: Call, host: Host) -> str:
    """Render a host, following what this call asks to follow."""
    summary = call.queries.host_summary(host.id)
    cluster = call.queries.cluster(host.cluster)
    cpu_type = cpu_types.of_hosts(cluster.compatibility if cluster else compatibility.USUAL).name

    def fresh() -> str:
        extra = _all_content(call, host) if call.all_content else ""
        return render.host(host, call.links("hosts", host.id), summary, cpu_type=cpu_type, extra=extra)

    if call.follow or call.all_content:
        return fresh()
    return call.cache.get(markup.path("hosts", host.id), (host, summary, cpu_type), fresh)


def _all_content(call: Call, host: Host) -> str:
    """Render what only `all_content` shows; where the hosted engine can run, hosts have an HA agent."""
    clusters = call.once(
        "hosted engine clusters",
        lambda: frozenset(vm.cluster for vm in call.queries.vms() if vm.hosted_engine),
    )
    return render.all_content(
        hosted_engine=host.cluster in clusters,
        maintenance=host.status == "maintenance",
    )


def post_host(call: Call) -> Response:
    """Add a host to the cluster that the body names by id or name, else to `Default`, and install it."""
    body = call.body("host")
    edit = host_edit(body)
    missing = [name for name in ("name", "address") if not getattr(edit, name)]
    if missing:
        raise incomplete("Host", *missing)
    wanted = cluster_id(call, body.child("cluster") or Body.parse(_DEFAULT_CLUSTER, "cluster"))
    call.need(Permit.CREATE_HOST)
    how = installing(call, body, activate=True)
    host = call.engine.installation.add(wanted or "", edit, how, caller=call.caller)
    return answers.document(render_host(call, host), 201)


def put_host(call: Call, host_id: str) -> Response:
    """Move a host to another cluster, which the body names by id or name; then change what else it names."""
    present(call.queries.host(host_id))
    body = call.body("host")
    wanted, edit = cluster_id(call, body.child("cluster")), host_edit(body)
    call.need(Permit.EDIT_HOST_CONFIGURATION)
    if wanted is not None:
        call.engine.hosts.change_cluster(host_id, wanted, caller=call.caller)
    if wanted is None or edit.given:
        call.engine.installation.edit(host_id, edit, caller=call.caller)
    return answers.document(render_host(call, present(call.queries.host(host_id))))


def delete_host(call: Call, host_id: str) -> Response:
    present(call.queries.host(host_id))
    call.need(Permit.DELETE_HOST)
    call.engine.hosts.remove(host_id, caller=call.caller)
    return done()
