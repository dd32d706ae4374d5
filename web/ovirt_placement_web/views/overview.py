"""What there is: clusters, with what needs somebody and where VMs run; lists of VMs, hosts and rules."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from ovirt_placement.answers.conflicts import conflicts
from ovirt_placement.answers.groups import groups_list
from ovirt_placement.answers.keys import compiled
from ovirt_placement.answers.question import AuthoredState
from ovirt_placement.answers.rules import rules_list
from ovirt_placement.answers.status.health import status_lines
from ovirt_placement.answers.violations import violations
from ovirt_placement.model import AffinityGroup, Cluster, Host, Vm
from ovirt_placement_web.bounds import Refusal
from ovirt_placement_web.site import check_query, site_of
from ovirt_placement_web.state.map import MapVm, misplaced
from ovirt_placement_web.state.plans import Life
from ovirt_placement_web.views.endpoints import (
    Asked,
    Shown,
    cluster_frame,
    list_frame,
    paged,
    viewed,
)
from ovirt_placement_web.views.needs import ILL, RESTS, Need, Standing, needs, present_plan, standing_of
from ovirt_placement_web.views.rules import state_of_group

#: Hits of a search that are shown.
_MOST_HITS = 50
#: Of larger clusters a square is drawn for each host instead of each VM.
_MOST_CARDS, _MOST_SQUARES = 48, 1200


@viewed()
def clusters(asked: Asked) -> Shown:
    answer = asked.questions.status()
    #: By cluster that needs attention, the most urgent matter, how many more there are, and what is known.
    urgent: dict[str, tuple[Need, int, Standing]] = {}
    for one in answer.clusters:
        known = standing_of(asked, one, answer.enforcer)
        if found := [need for need in needs(asked, known) if need.tone != "info"]:
            urgent[one.cluster.id] = found[0], len(found) - 1, known
    return "clusters.html", {
        "answer": answer,
        "urgent": urgent,
        "others": [place for place in asked.site.places if place.root != asked.site.root],
    }


@viewed()
def cluster(asked: Asked) -> Shown:
    one, snapshot, frame = asked.cluster, asked.snapshot, cluster_frame(asked, asked.cluster, "Overview")
    enforcer = asked.questions.status().enforcer
    drawn = asked.questions.map(one)
    vms: list[list[MapVm]] = [[] for _ in drawn.hosts]
    for vm in drawn.vms:
        if vm.host is not None:
            vms[vm.host].append(vm)
    known = standing_of(asked, frame["numbers"], enforcer)
    down = [host.status for host in snapshot.hosts_of_cluster.get(one.id, ()) if not host.up]
    return "cluster.html", {
        **frame,
        "needs": needs(asked, known),
        "known": known,
        "rules": _rules_in_force(asked, one),
        "enforcer": enforcer,
        "violations": asked.questions.of_clusters(violations, one).violations,
        "conflicts": asked.questions.of_clusters(conflicts, one).clusters,
        "repairs": _repairs(known.plan),
        "drawn": drawn,
        "hosts": list(zip(drawn.hosts, vms, strict=True)),
        "small": len(drawn.hosts) <= _MOST_CARDS and len(drawn.vms) <= _MOST_SQUARES,
        "violated": {at for at, group in enumerate(drawn.groups) if group.violated},
        "ill": ILL,
        "failed": any(status not in RESTS for status in down),
        "down": sum(vm.host is None and vm.cluster == one.id for vm in snapshot.vms),
        "away": [(down.count(status), status) for status in sorted(set(down))[:2]],
    }


def _rules_in_force(asked: Asked, one: Cluster) -> int:
    """How many there are to violate: an affinity group may have one for its VMs, and one for their hosts."""
    groups = asked.questions.of_clusters(groups_list, one).groups
    placement = (each.record for each in rules_list(AuthoredState(asked.snapshot, {})).rules)
    return sum(each.vms_rule.enabled + each.hosts_rule.enabled for each in groups) + sum(
        each.satisfied is not None and each.cluster is not None and each.cluster.id == one.id
        for each in placement
    )


def _repairs(plan: Life | None) -> dict[str, tuple[int, Any]]:
    """By VM the step of a plan that moves it, and where to, where one does."""
    steps = plan.steps if plan else ()
    return {vm["id"]: (number, step["to"]) for number, step, _ in steps for vm in step["vms"]}


@viewed()
def map_view(asked: Asked) -> Shown:
    return "map.html", cluster_frame(asked, asked.cluster, "Map")


@viewed("page")
def table(asked: Asked) -> Shown:
    """All that the map draws, as a table."""
    drawn = asked.questions.map(asked.cluster)
    shown = paged(asked, range(len(drawn.hosts)))
    vms: dict[int, list[MapVm]] = {at: [] for at in shown["items"]}
    for vm in drawn.vms:
        for at in {vm.host, vm.to} & vms.keys():
            vms[at or 0].append(vm)
    return "table.html", {**cluster_frame(asked, asked.cluster, "Map"), "drawn": drawn, "rows": vms, **shown}


# -- Lists.


@viewed("q", "show", "page")
def vms(asked: Asked) -> Shown:
    wrong, moving = _misplaced(asked), asked.snapshot.pending_hosts
    narrowed: dict[str, Callable[[Vm], bool]] = {
        "": lambda one: True,
        "wrong": lambda one: one.id in wrong,
        "down": lambda one: one.host is None,
        "lost": lambda one: one.status in ILL or one.crashed,
        "moving": lambda one: one.status == "migrating" or one.id in moving,
        "ha": lambda one: one.ha,
    }
    shown = _listed(asked, asked.snapshot.vms, narrowed, lambda one: (one.id not in wrong, one.name))
    frame = {"part": "Virtual machines", "cluster": None, "place": "/vms"}
    return "listing.html", {**frame, "kind": "vm", "wrong": wrong, **shown}


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
    narrowed: dict[str, Callable[[Host], bool]] = {
        "": lambda one: True,
        "wrong": lambda one: one.id in wrong,
        "down": lambda one: not one.up,
    }
    shown = _listed(asked, every, narrowed, lambda one: (one.up, one.id not in wrong, one.name))
    return "listing.html", {**frame, "kind": "host", "wrong": wrong, **shown}


@viewed("q", "page")
def rules(asked: Asked) -> Shown:
    """All rules, or those of a cluster with what its plan repairs."""
    frame, questions = list_frame(asked, "Rules"), asked.questions
    one: Cluster | None = frame["cluster"]
    plan = present_plan(asked, one, questions.status().enforcer) if one else None
    groups = questions.of_clusters(groups_list, one).groups
    placement = [each.record for each in rules_list(AuthoredState(asked.snapshot, {})).rules]
    return "rules.html", {
        **frame,
        "repairs": _repairs(plan),
        "violations": questions.of_clusters(violations, one).violations,
        "conflicts": questions.of_clusters(conflicts, one).clusters if one else (),
        "rules": [each for each in placement if one is None or (each.cluster and each.cluster.id == one.id)],
        **_listed(asked, groups, {"": lambda each: True}, lambda each: (not each.violated, each.name)),
    }


@viewed("q")
def search(asked: Asked) -> Shown:
    word, snapshot = asked.word("q").strip(), asked.snapshot
    lists: dict[str, Iterable[Vm | Host | AffinityGroup | Cluster]] = {
        "vm": snapshot.vms,
        "host": snapshot.hosts,
        "group": snapshot.affinity_groups,
        "cluster": snapshot.clusters,
    }
    hits = [
        (kind, one)
        for kind, items in lists.items()
        for one in items
        if word and (word.casefold() in one.name.casefold() or word == one.id)
    ]
    hits.sort(key=lambda hit: (hit[1].name.casefold() != word.casefold(), len(hit[1].name), hit[1].name))
    return "search.html", {"word": word, "hits": hits[:_MOST_HITS], "count": len(hits)}


def _misplaced(asked: Asked) -> dict[str, str]:
    return misplaced(asked.questions.of_clusters(violations).violations)


def _listed(
    asked: Asked,
    every: Iterable[Any],
    narrowed: Mapping[str, Callable[[Any], bool]],
    order: Callable[[Any], Any],
) -> dict[str, Any]:
    """A page of those with the word in their name that a list is narrowed to, and how to come to others."""
    word, show = asked.word("q").strip(), asked.word("show")
    if show not in narrowed:
        raise Refusal(400, f"show: {', '.join(filter(None, narrowed))}")
    found = [one for one in every if word.casefold() in one.name.casefold() and narrowed[show](one)]
    query = {"q": word, "show": show} if show else {"q": word}
    shown = {"found": len(found), "word": word, "show": show, "query": query}
    return {**paged(asked, sorted(found, key=order)), **shown}


# -- What is not listed.


@viewed()
def group(asked: Asked) -> Shown:
    """A group with its members, what violates it, and what it clashes with."""
    one = asked.named("affinity group", asked.snapshot.affinity_groups)
    listed = asked.questions.of_clusters(groups_list, group=one.id).groups[0]
    here = asked.snapshot.cluster_by_id[one.cluster]
    found: Sequence[Any] = asked.questions.of_clusters(conflicts, here).clusters
    clashes = [each for of in found for each in (*of.conflicts, *of.contradictions)]
    return "group.html", {
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
        "host": one,
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

    def render() -> Response:
        return site.page(request, "summary.html", view=view, answer=site.questions(view).status())

    return await site.bounds.views.run(site.session(request, use=False), render)


def start(request: Request) -> Response:
    """The address without its last slash leads on to the first view."""
    return RedirectResponse(f"{site_of(request).root}/", 307)
