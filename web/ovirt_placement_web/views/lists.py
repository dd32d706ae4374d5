"""The lists of all VMs, hosts and rules, or of those of a cluster; and the search for any of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from starlette.requests import Request

from ovirt_placement.answers.conflicts import conflicts
from ovirt_placement.answers.groups.listing import groups_list
from ovirt_placement.answers.question import AuthoredState
from ovirt_placement.answers.rules import RuleRecord, asked, rules_list, state_text, strength
from ovirt_placement.answers.violations import violations
from ovirt_placement.model import AffinityGroup, Cluster, Host, Vm
from ovirt_placement_web.bounds import Refusal
from ovirt_placement_web.site import Site
from ovirt_placement_web.state.keeper import View
from ovirt_placement_web.state.map import misplaced
from ovirt_placement_web.views.needs import ILL, present_plan, repairs
from ovirt_placement_web.views.pages import Shown, list_frame, paged, viewed

#: Hits of a search that are shown.
_MOST_HITS = 50
_RULE_HEADERS = ("Rule", "Cluster", "Asks", "VMs", "Strength", "State")


@viewed("q", "show", "page")
def vms(site: Site, request: Request, view: View) -> Shown:
    wrong, moving = _misplaced(site, view), view.snapshot.pending_hosts
    narrowed: dict[str, tuple[str, Callable[[Vm], bool]]] = {
        "": ("All VMs", lambda one: True),
        "wrong": ("Misplaced", lambda one: one.id in wrong),
        "down": ("Down", lambda one: one.host is None),
        "lost": ("Not responding", lambda one: one.status in ILL or one.crashed),
        "moving": ("Migrating", lambda one: one.status == "migrating" or one.id in moving),
        "ha": ("Highly available", lambda one: one.ha),
    }
    listed = _listed(request, view.snapshot.vms, narrowed, wrong)
    return "listing.html", {
        "part": "Virtual machines",
        "title": "Virtual machines",
        "kind": "vm",
        "cluster": None,
        "place": "/vms",
        "wrong": wrong,
        **_list_page(request, listed, narrowed),
    }


@viewed("q", "show", "page")
def hosts(site: Site, request: Request, view: View) -> Shown:
    """All hosts, or those of a cluster."""
    frame, known = list_frame(site, request, view, "Hosts"), view.snapshot.vm_by_id
    one = frame["cluster"]
    every = view.snapshot.hosts if one is None else view.snapshot.hosts_of_cluster.get(one.id, ())
    wrong = Counter(place for vm in _misplaced(site, view) if vm in known and (place := known[vm].host))
    narrowed: dict[str, tuple[str, Callable[[Host], bool]]] = {
        "": ("All hosts", lambda one: True),
        "wrong": ("With misplaced VMs", lambda one: one.id in wrong),
        "down": ("Not up", lambda one: not one.up),
    }
    listed = sorted(_listed(request, every, narrowed, wrong), key=lambda one: one.up)
    shown = {"title": "Hosts", "kind": "host", "wrong": wrong, **_list_page(request, listed, narrowed)}
    return "listing.html", {**frame, **shown}


@viewed("q", "page")
def rules(site: Site, request: Request, view: View) -> Shown:
    """All rules, or those of a cluster with what its plan repairs."""
    frame, questions, word = list_frame(site, request, view, "Rules"), site.questions, _word(request)
    cluster: Cluster | None = frame["cluster"]
    plan = present_plan(site, cluster, questions.status(view).enforcer) if cluster else None
    every = questions.of_clusters(view, groups_list, cluster).groups
    groups = [one for one in every if word.casefold() in one.name.casefold()]
    groups.sort(key=lambda one: (not one.violated, one.name))
    shown = _list_page(request, groups)
    placement = [one.record for one in rules_list(AuthoredState(view.snapshot, {})).rules]
    own = [one for one in placement if cluster is None or (one.cluster and one.cluster.id == cluster.id)]
    return "rules.html", {
        **frame,
        "repairs": repairs(plan),
        "violations": questions.of_clusters(view, violations, cluster).violations,
        "conflicts": questions.of_clusters(view, conflicts, cluster).clusters if cluster else (),
        "groups": shown.pop("items"),
        "placement_rules": [(one.cluster, _rule_row(one)) for one in own],
        "rule_headers": _RULE_HEADERS,
        **shown,
    }


def _rule_row(one: RuleRecord) -> tuple[object, ...]:
    cluster = one.cluster.name if one.cluster else one.rule.cluster
    vms = len(one.vms) + len(one.other_vms) or "all"
    return one.rule.name, cluster, asked(one.rule), vms, strength(one.rule), state_text(one).capitalize()


@viewed("q")
def search(site: Site, request: Request, view: View) -> Shown:
    word, snapshot = _word(request), view.snapshot
    lists: list[tuple[str, str, Iterable[Vm | Host | AffinityGroup | Cluster]]] = [
        ("vm", "Virtual machine", snapshot.vms),
        ("host", "Host", snapshot.hosts),
        ("group", "Affinity group", snapshot.affinity_groups),
        ("cluster", "Cluster", snapshot.clusters),
    ]
    hits = [
        (kind, noun, one, *_where(one, view))
        for kind, noun, items in lists
        for one in items
        if word and (word.casefold() in one.name.casefold() or word == one.id)
    ]
    hits.sort(key=lambda hit: (hit[2].name.casefold() != word.casefold(), len(hit[2].name), hit[2].name))
    return "search.html", {"word": word, "hits": hits[:_MOST_HITS], "count": len(hits)}


def _where(one: Any, view: View) -> tuple[Host | None, str]:
    """The host of a VM, and the state of what has one."""
    place = view.snapshot.host_by_id.get(one.host or "") if isinstance(one, Vm) else None
    return place, getattr(one, "status", "").replace("_", " ")


def _misplaced(site: Site, view: View) -> dict[str, str]:
    return misplaced(site.questions.of_clusters(view, violations).violations)


def _word(request: Request) -> str:
    return request.query_params.get("q", "").strip()


def _listed(
    request: Request,
    every: Iterable[Any],
    narrowed: Mapping[str, tuple[str, Callable[[Any], bool]]],
    wrong: Mapping[str, object],
) -> list[Any]:
    """Those with the word in their name that a list is narrowed to; what is misplaced comes first."""
    show = request.query_params.get("show", "")
    if show not in narrowed:
        raise Refusal(400, f"show: {', '.join(filter(None, narrowed))}")
    word, holds = _word(request).casefold(), narrowed[show][1]
    found = [one for one in every if word in one.name.casefold() and holds(one)]
    return sorted(found, key=lambda one: (one.id not in wrong, one.name))


def _list_page(
    request: Request,
    items: Sequence[Any],
    narrowed: Mapping[str, tuple[str, object]] | None = None,
) -> dict[str, Any]:
    """A page of a list, and how to come to the others."""
    word, show = _word(request), request.query_params.get("show", "")
    return {
        **paged(request, items),
        "found": len(items),
        "word": word,
        "show": show,
        "shows": [(name, text) for name, (text, _) in (narrowed or {}).items()],
        "query": {"q": word, "show": show} if show else {"q": word},
    }
