"""Lists of VMs, hosts and rules, the search, one host, what the doctor found, and the summary for others."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from ovirt_placement.answers.conflicts import conflicts
from ovirt_placement.answers.groups import groups_list
from ovirt_placement.answers.keys import compiled
from ovirt_placement.answers.question import AuthoredState
from ovirt_placement.answers.rules import RuleRecord, rules_list, state_text, strength
from ovirt_placement.answers.rules import asked as text_of
from ovirt_placement.answers.status.health import status_lines
from ovirt_placement.answers.violations import violations
from ovirt_placement.model import AffinityGroup, Cluster, Host, Snapshot, Vm
from ovirt_placement_web.bounds import Refusal
from ovirt_placement_web.site import check_query, site_of
from ovirt_placement_web.state.map import misplaced
from ovirt_placement_web.views.endpoints import Asked, Shown, condition, list_frame, paged, viewed
from ovirt_placement_web.views.needs import ILL, present_plan, repairs

#: Hits of a search that are shown.
_MOST_HITS = 50
_RULE_HEADERS = ("Rule", "Cluster", "Asks", "VMs", "Strength", "State")


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
        (kind, noun, one, *_where(one, snapshot))
        for kind, noun, items in lists
        for one in items
        if word and (word.casefold() in one.name.casefold() or word == one.id)
    ]
    hits.sort(key=lambda hit: (hit[2].name.casefold() != word.casefold(), len(hit[2].name), hit[2].name))
    return "search.html", {"word": word, "hits": hits[:_MOST_HITS], "count": len(hits)}


def _where(one: Any, snapshot: Snapshot) -> tuple[Host | None, str]:
    """The host of a VM, and the state of what has one."""
    place = snapshot.host_by_id.get(one.host or "") if isinstance(one, Vm) else None
    return place, getattr(one, "status", "").replace("_", " ")


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
