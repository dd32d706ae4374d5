"""The lists of all VMs, hosts and rules, or of those of a cluster; and the search for any of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from starlette.requests import Request

from ovirt_placement.answers.conflicts import conflicts
from ovirt_placement.answers.groups.listing import groups_list
from ovirt_placement.answers.rules import (
    RuleRecord,
    StateWithRules,
    asked,
    rules_list,
    state_text,
    strength,
)
from ovirt_placement.answers.violations import violations
from ovirt_placement.model import AffinityGroup, Cluster, Host, Snapshot, Vm
from ovirt_placement_web.bounds import Refusal
from ovirt_placement_web.keeper import View
from ovirt_placement_web.needs import ILL, present_plan, repairs
from ovirt_placement_web.pages import Shown, cluster_frame, found, misplaced, viewed
from ovirt_placement_web.site import Site, number

#: Rows of a page of a list, and hits of a search.
_ROWS = 50
_HOSTS = {"": "All hosts", "wrong": "With misplaced VMs", "down": "Not up"}
_VMS = {
    "": "All VMs",
    "wrong": "Misplaced",
    "down": "Down",
    "lost": "Not responding",
    "moving": "Migrating",
    "ha": "Highly available",
}

_RULE_HEADERS = ("Rule", "Cluster", "Asks", "VMs", "Strength", "State")

Item = TypeVar("Item", Vm, Host, AffinityGroup)


@viewed("q", "show", "page")
def vms(site: Site, request: Request, view: View) -> Shown:
    snapshot, wrong = view.snapshot, misplaced(site.questions.of_clusters(view, violations).violations)
    chosen: dict[str, Callable[[Vm], bool]] = {
        "": lambda one: True,
        "wrong": lambda one: one.id in wrong,
        "down": lambda one: one.host is None,
        "lost": lambda one: one.status in ILL or one.crashed,
        "moving": lambda one: one.status == "migrating" or one.id in snapshot.pending_hosts,
        "ha": lambda one: one.ha,
    }
    show = _show(request, _VMS)
    items = [one for one in _named(request, snapshot.vms) if chosen[show](one)]
    items.sort(key=lambda one: (one.id not in wrong, one.name))
    shown = _paged(request, items, "/vms", show)
    return "listing.html", {
        "part": "Virtual machines",
        "title": "Virtual machines",
        "kind": "vm",
        "cluster": None,
        "wrong": wrong,
        "shows": _VMS.items(),
        **shown,
    }


@viewed("q", "show", "page")
def hosts(site: Site, request: Request, view: View) -> Shown:
    frame = {"part": "Hosts", "cluster": None}
    return "listing.html", {**frame, **_hosts(site, request, view, view.snapshot.hosts, "/hosts")}


@viewed("q", "show", "page")
def hosts_of_cluster(site: Site, request: Request, view: View) -> Shown:
    one = found(request, "cluster", view.snapshot.clusters)
    own = view.snapshot.hosts_of_cluster.get(one.id, ())
    return "listing.html", {
        **cluster_frame(site, view, one, "Hosts"),
        **_hosts(site, request, view, own, f"/cluster/{one.id}/hosts"),
    }


def _hosts(site: Site, request: Request, view: View, every: Iterable[Host], path: str) -> dict[str, Any]:
    wrong: dict[str, int] = {}
    for name in misplaced(site.questions.of_clusters(view, violations).violations):
        place = view.snapshot.vm_by_id[name].host if name in view.snapshot.vm_by_id else None
        if place is not None:
            wrong[place] = wrong.get(place, 0) + 1
    show = _show(request, _HOSTS)
    items = [
        one
        for one in _named(request, every)
        if not show or (one.id in wrong if show == "wrong" else not one.up)
    ]
    items.sort(key=lambda one: (one.up, one.id not in wrong, one.name))
    shown = _paged(request, items, path, show)
    return {"title": "Hosts", "kind": "host", "wrong": wrong, "shows": _HOSTS.items(), **shown}


@viewed("q", "page")
def rules(site: Site, request: Request, view: View) -> Shown:
    return "rules.html", {
        "part": "Rules",
        "cluster": None,
        "repairs": {},
        **_rules(site, request, view, None, "/rules"),
    }


@viewed("q", "page")
def rules_of_cluster(site: Site, request: Request, view: View) -> Shown:
    one = found(request, "cluster", view.snapshot.clusters)
    plan = present_plan(site, one, site.questions.status(view).enforcer)
    return "rules.html", {
        **cluster_frame(site, view, one, "Rules"),
        "repairs": repairs(plan),
        **_rules(site, request, view, one, f"/cluster/{one.id}/rules"),
    }


def _rules(site: Site, request: Request, view: View, cluster: Cluster | None, path: str) -> dict[str, Any]:
    groups = [
        one
        for one in site.questions.of_clusters(view, groups_list, cluster).groups
        if _matches(request, one.name)
    ]
    groups.sort(key=lambda one: (not one.violated, one.name))
    paged = _paged(request, groups, path, "")
    placement = rules_list(StateWithRules(view.snapshot, {})).rules
    own = [one.record for one in placement if cluster is None or _is_in(one.record, cluster)]
    return {
        "violations": site.questions.of_clusters(view, violations, cluster).violations,
        "conflicts": site.questions.of_clusters(view, conflicts, cluster).clusters if cluster else (),
        "groups": paged.pop("items"),
        "placement_rules": [(one.cluster, _rule_row(one)) for one in own],
        "rule_headers": _RULE_HEADERS,
        **paged,
    }


def _rule_row(one: RuleRecord) -> tuple[object, ...]:
    cluster = one.cluster.name if one.cluster else one.rule.cluster
    vms = len(one.vms) + len(one.other_vms) or "all"
    return one.rule.name, cluster, asked(one.rule), vms, strength(one.rule), state_text(one).capitalize()


def _is_in(record: RuleRecord, cluster: Cluster) -> bool:
    return record.cluster is not None and record.cluster.id == cluster.id


@viewed("q")
def search(site: Site, request: Request, view: View) -> Shown:
    word = request.query_params.get("q", "").strip()
    lists: list[tuple[str, str, Iterable[Vm | Host | AffinityGroup | Cluster]]] = [
        ("vm", "Virtual machine", view.snapshot.vms),
        ("host", "Host", view.snapshot.hosts),
        ("group", "Affinity group", view.snapshot.affinity_groups),
        ("cluster", "Cluster", view.snapshot.clusters),
    ]
    hits = [
        (kind, noun, one, *_where(one, view.snapshot))
        for kind, noun, items in lists
        for one in items
        if word and (word.casefold() in one.name.casefold() or word == one.id)
    ]
    hits.sort(key=lambda hit: (hit[2].name.casefold() != word.casefold(), len(hit[2].name), hit[2].name))
    return "search.html", {"word": word, "hits": hits[:_ROWS], "count": len(hits)}


def _where(one: Any, snapshot: Snapshot) -> tuple[Host | None, str]:
    """The host of a VM, and the state of what has one."""
    place = snapshot.host_by_id.get(one.host or "") if isinstance(one, Vm) else None
    return place, getattr(one, "status", "").replace("_", " ")


def _show(request: Request, shows: dict[str, str]) -> str:
    show = request.query_params.get("show", "")
    if show not in shows:
        raise Refusal(400, f"show: {', '.join(filter(None, shows))}")
    return show


def _matches(request: Request, name: str) -> bool:
    return request.query_params.get("q", "").strip().casefold() in name.casefold()


def _named(request: Request, every: Iterable[Item]) -> list[Item]:
    return [one for one in every if _matches(request, one.name)]


def _paged(request: Request, items: Sequence[Any], path: str, show: str) -> dict[str, Any]:
    """A page of a list, and how to come to the others."""
    last = max(1, -(-len(items) // _ROWS))
    page = number(request, "page", last)
    word = request.query_params.get("q", "").strip()
    return {
        "items": items[(page - 1) * _ROWS : page * _ROWS],
        "found": len(items),
        "word": word,
        "show": show,
        "number": page,
        "last": last,
        "place": path,
        "query": {"q": word, "show": show} if show else {"q": word},
    }
