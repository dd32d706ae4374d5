"""The views that are drawn: the map of a cluster with its table, and what would come of failing hosts."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote, urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from ovirt_placement.answers.ha_check import (
    CheckedCluster,
    Domains,
    UnplacedRecord,
    configured_domains,
)
from ovirt_placement.model import Cluster
from ovirt_placement.model.amounts import counted
from ovirt_placement_web.bounds import Refusal
from ovirt_placement_web.keeper import View
from ovirt_placement_web.log_in import to_log_in
from ovirt_placement_web.pages import Shown, cluster_frame, found, viewed
from ovirt_placement_web.site import Site, check_query, number, site_of
from ovirt_service.errors import UserError

#: Hosts on a page of the table.
_HOSTS = 50


@viewed()
def cluster_map(site: Site, request: Request, view: View) -> Shown:
    one = found(request, "cluster", view.snapshot.clusters)
    return "map.html", cluster_frame(site, view, one, "Map")


@viewed("page")
def table(site: Site, request: Request, view: View) -> Shown:
    """All that the map draws, as a table."""
    one = found(request, "cluster", view.snapshot.clusters)
    drawn = site.questions.map(view, one)
    last = max(1, -(-len(drawn.hosts) // _HOSTS))
    page = number(request, "page", last)
    first = (page - 1) * _HOSTS
    shown = range(first, min(first + _HOSTS, len(drawn.hosts)))
    vms: dict[int, list[Any]] = {at: [] for at in shown}
    for vm in drawn.vms:
        for at in {vm.host, vm.to} & vms.keys():
            vms[at or 0].append(vm)
    rows = [(at, drawn.hosts[at], vms[at]) for at in shown]
    return "table.html", {
        **cluster_frame(site, view, one, "Map"),
        "drawn": drawn,
        "rows": rows,
        "number": page,
        "last": last,
    }


async def fail(request: Request) -> Response:
    """On to the view of the failure of hosts, which the engine's portal knows without their cluster."""
    check_query(request, ["host"], repeated=["host"])
    site = site_of(request)
    if site.session(request) is None:
        return to_log_in(request, site)
    known = site.keeper.view.snapshot.host_by_id
    names = request.query_params.getlist("host")
    if unknown := [name for name in names if name not in known]:
        raise Refusal(404, f"There is no host {unknown[0]}.")
    clusters = {known[name].cluster for name in names}
    if len(clusters) != 1:
        raise Refusal(400, "Name hosts of one cluster, as host=ID.")
    query = urlencode([("host", name) for name in names])
    return RedirectResponse(f"{site.root}/ha/{quote(clusters.pop(), safe='')}?{query}", 303)


@viewed("host", "domain", repeated=("host", "domain"), kind=lambda bounds, request: bounds.checks)
def failures(site: Site, request: Request, view: View) -> Shown:
    """What would come of the failure of hosts, or of whole failure domains, together."""
    one = found(request, "cluster", view.snapshot.clusters)
    hosts = view.snapshot.hosts_of_cluster.get(one.id, ())
    domains = _domains(site, view, one)
    failing = _failing(request, view, one, domains)
    vms = view.snapshot.vms_of_host
    shown: dict[str, Any] = {
        **cluster_frame(site, view, one, "Failures"),
        "hosts": sorted(hosts, key=lambda host: host.name),
        "notes": {
            host.id: counted(len(vms.get(host.id, ())), "VM") if host.up else host.status.replace("_", " ")
            for host in hosts
        },
        "domains": domains,
        "failing": failing,
        "checked": site.questions.ha_check(view, one).clusters[0] if hosts else None,
        "outcome": None,
    }
    if failing:
        answer = site.questions.ha_check(view, one, [host for host in hosts if host.id in failing])
        if answer.clusters:
            shown |= _outcome(site, view, answer.clusters[0], failing)
    return "ha.html", shown


def _outcome(site: Site, view: View, outcome: CheckedCluster, failing: frozenset[str]) -> dict[str, Any]:
    """Where each VM would start, in the order of the starts, and why some could not."""
    starts = site.questions.starts(view, failing)
    why: dict[str, UnplacedRecord] = {vm.vm.id: vm for loss in outcome.losses for vm in loss.because}
    return {"outcome": outcome, "starts": starts.starts, "stopped": starts.stopped, "why": why}


def _domains(site: Site, view: View, cluster: Cluster) -> Domains:
    """The failure domains that have hosts of this cluster; none where they are set wrongly."""
    own = {host.id for host in view.snapshot.hosts_of_cluster.get(cluster.id, ())}
    try:
        known = configured_domains(view.snapshot, site.config.ha)
    except UserError:
        return ()
    return tuple(one for one in known if one.hosts & own)


def _failing(request: Request, view: View, cluster: Cluster, domains: Domains) -> frozenset[str]:
    own = {host.id: host for host in view.snapshot.hosts_of_cluster.get(cluster.id, ())}
    by_name = {one.name: one.hosts for one in domains}
    chosen = frozenset(request.query_params.getlist("host"))
    if unknown := chosen - own.keys():
        raise Refusal(404, f"Cluster {cluster.name} has no host {min(unknown)}.")
    for name in request.query_params.getlist("domain"):
        if name not in by_name:
            raise Refusal(404, f"Cluster {cluster.name} has no failure domain {name}.")
        chosen |= by_name[name] & own.keys()
    return chosen
