"""The views of a cluster at large: what needs somebody, where VMs run, and what failures would do."""

from math import ceil, sqrt
from typing import Any
from urllib.parse import quote, urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from ovirt_placement.answers.configured import Domains, configured_domains
from ovirt_placement.answers.conflicts import conflicts
from ovirt_placement.answers.groups import groups_list
from ovirt_placement.answers.status.ha_check import CheckedCluster, UnplacedRecord
from ovirt_placement.answers.violations import violations
from ovirt_placement.model import Cluster, Host
from ovirt_placement.model.names import counted
from ovirt_placement_web.bounds import Refusal
from ovirt_placement_web.log_in import to_log_in
from ovirt_placement_web.site import check_query, site_of
from ovirt_placement_web.state.map import MapDocument, MapHost, MapVm
from ovirt_placement_web.views.endpoints import Asked, Shown, cluster_frame, condition, paged, viewed
from ovirt_placement_web.views.needs import ILL, RESTS, repairs, standing_of, what_next
from ovirt_placement_web.views.needs import needs as needs_of
from ovirt_service.errors import UserError

#: Of larger clusters a square is drawn for each host instead of each VM.
_MOST_CARDS, _MOST_SQUARES = 48, 1200


@viewed()
def clusters(asked: Asked) -> Shown:
    answer = asked.questions.status()
    others = [place for place in asked.site.places if place.root != asked.site.root]
    needs = []
    for one in answer.clusters:
        place = f"/cluster/{one.cluster.id}"
        known = standing_of(asked, one, answer.enforcer)
        found = tuple(needs_of(asked, known))
        if urgent := [need for need in found if need.tone != "info"]:
            first = urgent[0]
            more = f" {counted(len(urgent) - 1, 'further matter')} there." if len(urgent) > 1 else ""
            ahead = what_next(asked.view, known)
            needs.append(
                first._replace(
                    title=f"{one.cluster.name}: {first.title[:1].lower()}{first.title[1:]}",
                    text=first.text + more + f" Next: {ahead[:1].lower()}{ahead[1:]}",
                    address=place if first.act else first.address or place,
                    action="Open the cluster" if first.act else first.action or "Open the cluster",
                    act=False,
                )
            )
    return "clusters.html", {
        "part": "Clusters",
        "answer": answer,
        "needs": needs,
        "states": {one.cluster.id: condition(one) for one in answer.clusters},
        "others": others,
    }


@viewed()
def cluster(asked: Asked) -> Shown:
    one = asked.cluster
    status = asked.questions.status()
    numbers = next(each for each in status.clusters if each.cluster.id == one.id)
    violated = asked.questions.of_clusters(violations, one).violations
    drawn = asked.questions.map(one)
    known = standing_of(asked, numbers, status.enforcer)
    hosts = asked.snapshot.hosts_of_cluster.get(one.id, ())
    down = [host for host in hosts if not host.up]
    failed = [host for host in down if host.status not in RESTS]
    groups = asked.questions.of_clusters(groups_list, one).groups
    return "cluster.html", {
        **cluster_frame(asked, one, "Overview"),
        "condition": condition(numbers),
        "needs": list(needs_of(asked, known)),
        "next": what_next(asked.view, known),
        "numbers": numbers,
        "rules": len(groups) + len(asked.snapshot.placement_rules),
        "enforcer": status.enforcer,
        "pause": known.pause,
        "violations": violated,
        "conflicts": asked.questions.of_clusters(conflicts, one).clusters,
        "plan": known.plan,
        "repairs": repairs(known.plan),
        **_picture(drawn, {group.id for found in violated for group in found.groups}),
        "failed_hosts": failed,
        "down": sum(vm.host is None and vm.cluster == one.id for vm in asked.snapshot.vms),
        "away": _away(down),
    }


def _away(down: list[Host]) -> str:
    """How the hosts that are not up are, in a few words."""
    states = sorted({host.status for host in down})
    return ", ".join(
        f"{sum(host.status == state for host in down)} {state.replace('_', ' ')}" for state in states[:2]
    )


def _picture(drawn: MapDocument, violated: set[str]) -> dict[str, Any]:
    """Where VMs run: hosts with their VMs, each as what it is drawn as and its title.

    A small cluster has cards of hosts, and squares of VMs; a larger one a square for each host.
    """
    groups = {at for at, group in enumerate(drawn.groups) if group.id in violated}
    vms: list[list[MapVm]] = [[] for _ in drawn.hosts]
    for vm in drawn.vms:
        if vm.host is not None:
            vms[vm.host].append(vm)
    small = len(drawn.hosts) <= _MOST_CARDS and len(drawn.vms) <= _MOST_SQUARES
    hosts = []
    for host, own in zip(drawn.hosts, vms, strict=True):
        up, memory = host.status == "up", host.used_percent
        squares = [(_mark(vm, groups, up=up), _title(vm, drawn)) for vm in own] if small else []
        hosts.append(
            (host, memory, {vm.wrong for vm in own} - {""}, len(own), squares, _host_title(host, own))
        )
    return {"small": small, "drawn": hosts, "across": max(1, ceil(sqrt(len(hosts) * 2.2)))}


def _host_title(host: MapHost, own: list[MapVm]) -> str:
    title = f"{host.name}, {host.status.replace('_', ' ')}: {counted(len(own), 'VM')}"
    title += f", {host.used_percent} % of memory" if host.status == "up" else ""
    wrong = [vm.name for vm in own if vm.wrong]
    return title + (f"; misplaced: {', '.join(wrong[:5])}" if wrong else "")


def _mark(vm: MapVm, violated: set[int], *, up: bool) -> str:
    if vm.status in ILL or not up:
        return "ill"
    if vm.wrong:
        return vm.wrong
    if vm.to is not None:
        return "moving"
    return "peer" if violated.intersection(vm.groups) else "plain"


def _title(vm: MapVm, drawn: MapDocument) -> str:
    groups = ", ".join(drawn.groups[group].name for group in vm.groups)
    wrong = f", violates a {vm.wrong} rule" if vm.wrong else ""
    wrong += f", {vm.status.replace('_', ' ')}" if vm.status != "up" else ""
    to = f", migrating to {drawn.hosts[vm.to].name}" if vm.to is not None else ""
    size = f", {vm.memory_mb / 1024:g} GiB, {counted(vm.vcpus, 'CPU')}"
    return f"{vm.name}{size}{f' ({groups})' if groups else ''}{wrong}{to}"


@viewed()
def map_view(asked: Asked) -> Shown:
    one = asked.cluster
    return "map.html", cluster_frame(asked, one, "Map")


@viewed("page")
def table(asked: Asked) -> Shown:
    """All that the map draws, as a table."""
    one = asked.cluster
    drawn = asked.questions.map(one)
    shown = paged(asked, range(len(drawn.hosts)))
    vms: dict[int, list[Any]] = {at: [] for at in shown["items"]}
    for vm in drawn.vms:
        for at in {vm.host, vm.to} & vms.keys():
            vms[at or 0].append(vm)
    rows = [(at, drawn.hosts[at], own) for at, own in vms.items()]
    return "table.html", {**cluster_frame(asked, one, "Map"), "drawn": drawn, "rows": rows, **shown}


async def fail(request: Request) -> Response:
    """On to the view of the failure of hosts, which the engine's portal knows without their cluster."""
    check_query(request, ["host"], repeated=["host"])
    site = site_of(request)
    if site.session(request) is None:
        return to_log_in(request, site)
    known = site.live.view.snapshot.host_by_id
    names = request.query_params.getlist("host")
    if unknown := [name for name in names if name not in known]:
        raise Refusal(404, f"There is no host {unknown[0]}.")
    clusters = {known[name].cluster for name in names}
    if len(clusters) != 1:
        raise Refusal(400, "Name hosts of one cluster, as host=ID.")
    query = urlencode([("host", name) for name in names])
    return RedirectResponse(f"{site.root}/ha/{quote(clusters.pop(), safe='')}?{query}", 303)


@viewed("host", "domain", repeated=("host", "domain"), kind=lambda bounds, request: bounds.checks)
def failures(asked: Asked) -> Shown:
    """What would come of the failure of hosts, or of whole failure domains, together."""
    one = asked.cluster
    hosts = asked.snapshot.hosts_of_cluster.get(one.id, ())
    domains = _domains(asked, one)
    failing = _failing(asked, one, domains)
    vms = asked.snapshot.vms_of_host
    shown: dict[str, Any] = {
        **cluster_frame(asked, one, "Failures"),
        "hosts": sorted(hosts, key=lambda host: host.name),
        "notes": {
            host.id: counted(len(vms.get(host.id, ())), "VM") if host.up else host.status.replace("_", " ")
            for host in hosts
        },
        "domains": domains,
        "failing": failing,
        "checked": asked.questions.ha_check(one).clusters[0] if hosts else None,
        "outcome": None,
    }
    if failing:
        answer = asked.questions.ha_check(one, [host for host in hosts if host.id in failing])
        if answer.clusters:
            shown |= _outcome(asked, answer.clusters[0], failing)
    return "ha.html", shown


def _outcome(asked: Asked, outcome: CheckedCluster, failing: frozenset[str]) -> dict[str, Any]:
    """Where each VM would start, in the order of the starts, and why some could not."""
    starts = asked.questions.starts(failing)
    why: dict[str, UnplacedRecord] = {vm.vm.id: vm for loss in outcome.losses for vm in loss.because}
    return {"outcome": outcome, "starts": starts.starts, "stopped": starts.stopped, "why": why}


def _domains(asked: Asked, cluster: Cluster) -> Domains:
    """The failure domains that have hosts of this cluster; none where they are set wrongly."""
    own = {host.id for host in asked.snapshot.hosts_of_cluster.get(cluster.id, ())}
    try:
        known = configured_domains(asked.snapshot, asked.config.ha)
    except UserError:
        return ()
    return tuple(one for one in known if one.hosts & own)


def _failing(asked: Asked, cluster: Cluster, domains: Domains) -> frozenset[str]:
    own = {host.id: host for host in asked.snapshot.hosts_of_cluster.get(cluster.id, ())}
    by_name = {one.name: one.hosts for one in domains}
    chosen = frozenset(asked.words("host"))
    if unknown := chosen - own.keys():
        raise Refusal(404, f"Cluster {cluster.name} has no host {min(unknown)}.")
    for name in asked.words("domain"):
        if name not in by_name:
            raise Refusal(404, f"Cluster {cluster.name} has no failure domain {name}.")
        chosen |= by_name[name] & own.keys()
    return chosen
