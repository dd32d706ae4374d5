"""What there is: clusters, with what needs somebody and where VMs run; lists of VMs, hosts and rules."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import ceil, sqrt
from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from ovirt_placement.answers.conflicts import ConflictFound, ContradictionFound, conflicts
from ovirt_placement.answers.groups import groups_list
from ovirt_placement.answers.keys import compiled
from ovirt_placement.answers.question import AuthoredState
from ovirt_placement.answers.rules import RuleRecord, rules_list, state_text, strength
from ovirt_placement.answers.rules import asked as text_of
from ovirt_placement.answers.status.health import status_lines
from ovirt_placement.answers.violations import violations
from ovirt_placement.model import AffinityGroup, Cluster, Host, Snapshot, Vm
from ovirt_placement.model.names import counted
from ovirt_placement_web.bounds import Refusal
from ovirt_placement_web.site import check_query, site_of
from ovirt_placement_web.state.map import MapDocument, MapHost, MapVm, misplaced
from ovirt_placement_web.views.endpoints import (
    Asked,
    Shown,
    cluster_frame,
    condition,
    list_frame,
    paged,
    viewed,
)
from ovirt_placement_web.views.needs import ILL, RESTS, present_plan, repairs, standing_of, what_next
from ovirt_placement_web.views.needs import needs as needs_of
from ovirt_placement_web.views.rules import state_of_group

#: Hits of a search that are shown.
_MOST_HITS = 50
_RULE_HEADERS = ("Rule", "Cluster", "Asks", "VMs", "Strength", "State")
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


# -- Lists.


@viewed("q", "show", "page")
def vms(asked: Asked) -> Shown:
    wrong, moving = _misplaced(asked), asked.snapshot.pending_hosts
    narrowed: dict[str, tuple[str, Callable[[Vm], bool]]] = {
        "": ("All VMs", lambda one: True),
        "wrong": ("Misplaced", lambda one: one.id in wrong),
        "down": ("Down", lambda one: one.host is None),
        "lost": ("Not responding", lambda one: one.status in ILL or one.crashed),
        "moving": ("Migrating", lambda one: one.status == "migrating" or one.id in moving),
        "ha": ("Highly available", lambda one: one.ha),
    }
    listed = _listed(asked, asked.snapshot.vms, narrowed, wrong)
    return "listing.html", {
        "part": "Virtual machines",
        "title": "Virtual machines",
        "kind": "vm",
        "cluster": None,
        "place": "/vms",
        "wrong": wrong,
        **_list_page(asked, listed, narrowed),
    }


@viewed("q", "show", "page")
def hosts(asked: Asked) -> Shown:
    """All hosts, or those of a cluster."""
    frame, known = list_frame(asked, "Hosts"), asked.snapshot.vm_by_id
    one = frame["cluster"]
    every = asked.snapshot.hosts if one is None else asked.snapshot.hosts_of_cluster.get(one.id, ())
    #: By host how hard the rules are that its VMs violate.
    wrong: dict[str, list[str]] = defaultdict(list)
    for vm, kind in _misplaced(asked).items():
        if vm in known and (place := known[vm].host):
            wrong[place].append(kind)
    narrowed: dict[str, tuple[str, Callable[[Host], bool]]] = {
        "": ("All hosts", lambda one: True),
        "wrong": ("With misplaced VMs", lambda one: one.id in wrong),
        "down": ("Not up", lambda one: not one.up),
    }
    listed = sorted(_listed(asked, every, narrowed, wrong), key=lambda one: one.up)
    shown = {"title": "Hosts", "kind": "host", "wrong": wrong, **_list_page(asked, listed, narrowed)}
    return "listing.html", {**frame, **shown}


@viewed("q", "page")
def rules(asked: Asked) -> Shown:
    """All rules, or those of a cluster with what its plan repairs."""
    frame, questions, word = list_frame(asked, "Rules"), asked.questions, _word(asked)
    cluster: Cluster | None = frame["cluster"]
    plan = present_plan(asked, cluster, questions.status().enforcer) if cluster else None
    every = questions.of_clusters(groups_list, cluster).groups
    groups = [one for one in every if word.casefold() in one.name.casefold()]
    groups.sort(key=lambda one: (not one.violated, one.name))
    shown = _list_page(asked, groups)
    placement = [one.record for one in rules_list(AuthoredState(asked.snapshot, {})).rules]
    own = [one for one in placement if cluster is None or (one.cluster and one.cluster.id == cluster.id)]
    return "rules.html", {
        **frame,
        "repairs": repairs(plan),
        "violations": questions.of_clusters(violations, cluster).violations,
        "conflicts": questions.of_clusters(conflicts, cluster).clusters if cluster else (),
        "groups": shown.pop("items"),
        "placement_rules": [(one.cluster, _rule_row(one)) for one in own],
        "rule_headers": _RULE_HEADERS,
        **shown,
    }


def _rule_row(one: RuleRecord) -> tuple[object, ...]:
    cluster = one.cluster.name if one.cluster else one.rule.cluster
    vms = len(one.vms) + len(one.other_vms) or "all"
    return one.rule.name, cluster, text_of(one.rule), vms, strength(one.rule), state_text(one).capitalize()


@viewed("q")
def search(asked: Asked) -> Shown:
    word, snapshot = _word(asked), asked.snapshot
    lists: list[tuple[str, str, Iterable[Vm | Host | AffinityGroup | Cluster]]] = [
        ("vm", "Virtual machine", snapshot.vms),
        ("host", "Host", snapshot.hosts),
        ("group", "Affinity group", snapshot.affinity_groups),
        ("cluster", "Cluster", snapshot.clusters),
    ]
    hits = [
        (kind, noun, one, _host_of(one, snapshot), getattr(one, "status", "").replace("_", " "))
        for kind, noun, items in lists
        for one in items
        if word and (word.casefold() in one.name.casefold() or word == one.id)
    ]
    hits.sort(key=lambda hit: (hit[2].name.casefold() != word.casefold(), len(hit[2].name), hit[2].name))
    return "search.html", {"word": word, "hits": hits[:_MOST_HITS], "count": len(hits)}


def _host_of(one: object, snapshot: Snapshot) -> Host | None:
    return snapshot.host_by_id.get(one.host or "") if isinstance(one, Vm) else None


def _misplaced(asked: Asked) -> dict[str, str]:
    return misplaced(asked.questions.of_clusters(violations).violations)


def _word(asked: Asked) -> str:
    return asked.word("q", "").strip()


def _listed(
    asked: Asked,
    every: Iterable[Any],
    narrowed: Mapping[str, tuple[str, Callable[[Any], bool]]],
    wrong: Mapping[str, object],
) -> list[Any]:
    """Those with the word in their name that a list is narrowed to; what is misplaced comes first."""
    show = asked.word("show", "")
    if show not in narrowed:
        raise Refusal(400, f"show: {', '.join(filter(None, narrowed))}")
    word, holds = _word(asked).casefold(), narrowed[show][1]
    found = [one for one in every if word in one.name.casefold() and holds(one)]
    return sorted(found, key=lambda one: (one.id not in wrong, one.name))


def _list_page(
    asked: Asked,
    items: Sequence[Any],
    narrowed: Mapping[str, tuple[str, object]] | None = None,
) -> dict[str, Any]:
    """A page of a list, and how to come to the others."""
    word, show = _word(asked), asked.word("show", "")
    return {
        **paged(asked, items),
        "found": len(items),
        "word": word,
        "show": show,
        "shows": [(name, text) for name, (text, _) in (narrowed or {}).items()],
        "query": {"q": word, "show": show} if show else {"q": word},
    }


# -- What is not listed.


@viewed()
def group(asked: Asked) -> Shown:
    """A group with its members, what violates it, and what it clashes with."""
    one = asked.named("affinity group", asked.snapshot.affinity_groups)
    listed = asked.questions.of_clusters(groups_list, group=one.id).groups[0]
    here = asked.snapshot.cluster_by_id[one.cluster]
    clashes: list[ConflictFound | ContradictionFound] = []
    for of_cluster in asked.questions.of_clusters(conflicts, here).clusters:
        clashes += [*of_cluster.conflicts, *of_cluster.contradictions]
    return "group.html", {
        "crumbs": (("Rules", "/rules"), (one.name, "")),
        "group": listed,
        "was": state_of_group(one),
        "clashes": [each for each in clashes if any(other.id == one.id for other in each.groups)],
        "violations": asked.questions.of_clusters(violations, group=one.id).violations,
        "hosts_of": {at.vm.id: at.host for at in listed.running},
    }


@viewed()
def host(asked: Asked) -> Shown:
    one = asked.named("host", asked.snapshot.hosts)
    keys = asked.questions.about(compiled.keys_of_host, one)
    violated = asked.questions.of_clusters(violations, host=one.id).violations
    return "host.html", {
        "crumbs": (("Hosts", "/hosts"), (one.name, "")),
        "host": one,
        "cluster": asked.snapshot.cluster_by_id[one.cluster],
        "vms": sorted(asked.snapshot.vms_of_host.get(one.id, ()), key=lambda vm: vm.name),
        "groups": asked.questions.of_clusters(groups_list, host=one.id).groups,
        "violations": violated,
        "wrong": misplaced(violated),
        "keys": compiled.host_table(keys),
        "ratios": compiled.ratios_text(keys),
    }


@viewed()
def health(asked: Asked) -> Shown:
    answer, at = asked.site.memory.examined or (None, 0.0)
    status = asked.questions.status()
    shown = {"answer": answer, "examined_at": at, "standing": status, "lines": list(status_lines(status))}
    return "health.html", {"part": "Health", **shown}


async def summary(request: Request) -> Response:
    """The clusters, as the page of another engine shows them; without a session, where to log in."""
    check_query(request, [])
    site = site_of(request)
    view = site.live.view
    if not site.knows(request):
        return site.page(request, "summary.html", view=view, answer=None)
    asker = site.session(request, use=False)

    def render() -> Response:
        answer = site.questions(view).status()
        states = {one.cluster.id: condition(one) for one in answer.clusters}
        return site.page(request, "summary.html", view=view, answer=answer, states=states)

    return await site.bounds.views.run(asker, render)


def start(request: Request) -> Response:
    """The address without its last slash leads on to the first view."""
    return RedirectResponse(f"{site_of(request).root}/", 307)
