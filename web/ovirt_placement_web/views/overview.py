"""What there is: clusters, with what needs a person and where VMs run; lists of VMs, hosts and rules."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from ovirt_placement.model import AffinityGroup, Cluster, Host, Vm
from ovirt_placement_web.bounds import Refusal
from ovirt_placement_web.site import check_query, site_of
from ovirt_placement_web.state.map import MapVm, misplaced
from ovirt_placement_web.state.plans import Life
from ovirt_placement_web.views.endpoints import Asked, Shown, paged, viewed
from ovirt_placement_web.views.needs import RESTS, Need, Standing, is_ill, needs, present_plan, standing_of
from ovirt_placement_web.views.rules import state_of_group

_MOST_HITS = 50
#: Of larger clusters a square is drawn for each host instead of each VM.
_MOST_CARDS, _MOST_SQUARES = 48, 1200


@viewed("/")
def clusters(asked: Asked) -> Shown:
    answer = asked.questions.status()
    #: By cluster that needs attention, the most urgent matter, how many more there are, and what is known.
    urgent: dict[str, tuple[Need, int, Standing]] = {}
    for status in answer.clusters:
        known = standing_of(asked, status, answer.enforcer)
        if found := [need for need in needs(asked, known) if need.tone != "info"]:
            urgent[status.cluster.id] = found[0], len(found) - 1, known
    return "clusters.html", {"answer": answer, "urgent": urgent, "places": asked.site.places}


@viewed("/cluster/{name}")
def cluster(asked: Asked) -> Shown:
    cluster, questions = asked.cluster, asked.questions
    status, drawn = questions.status(), questions.map(cluster)
    vms: list[list[MapVm]] = [[] for _ in drawn.hosts]
    for vm in drawn.vms:
        if vm.host is not None:
            vms[vm.host].append(vm)
    numbers = next(each for each in status.clusters if each.cluster.id == cluster.id)
    known = standing_of(asked, numbers, status.enforcer)
    own = [vm for vm in asked.snapshot.vms if vm.cluster == cluster.id]
    return "cluster.html", {
        "cluster": cluster,
        "needs": needs(asked, known),
        "known": known,
        "enforcer": status.enforcer,
        "repairs": _repairs(known.plan),
        "drawn": drawn,
        "hosts": list(zip(drawn.hosts, vms, strict=True)),
        "small": len(drawn.hosts) <= _MOST_CARDS and len(drawn.vms) <= _MOST_SQUARES,
        "violated": {at for at, group in enumerate(drawn.groups) if group.violated},
        "ill": {vm.id for vm in own if is_ill(asked.snapshot, vm)},
        "rests": RESTS,
        "down": sum(vm.host is None for vm in own),
    }


def _repairs(plan: Life | None) -> dict[str, tuple[int, Any]]:
    """By VM the step of a plan that moves it, and where to, where one does."""
    steps = plan.steps if plan else ()
    return {vm["id"]: (number, step["to"]) for number, step, _ in steps for vm in step["vms"]}


@viewed("/map/{name}")
def map_view(asked: Asked) -> Shown:
    return "map.html", {"cluster": asked.cluster}


@viewed("/map/{name}/table", query=("page",))
def table(asked: Asked) -> Shown:
    cluster = asked.cluster
    drawn = asked.questions.map(cluster)
    shown = paged(asked, range(len(drawn.hosts)))
    vms: dict[int, list[MapVm]] = {at: [] for at in shown["items"]}
    for vm in drawn.vms:
        for at in {vm.host, vm.to} & vms.keys():
            vms[at or 0].append(vm)
    return "table.html", {"cluster": cluster, "drawn": drawn, "rows": vms, **shown}


@viewed("/vms", "/cluster/{name}/vms", query=("q", "show", "page"))
def vms(asked: Asked) -> Shown:
    cluster, wrong, moving = asked.cluster_if_any, _misplaced(asked), asked.snapshot.pending_hosts
    every = [vm for vm in asked.snapshot.vms if cluster is None or vm.cluster == cluster.id]
    narrowed: dict[str, Callable[[Vm], bool]] = {
        "wrong": lambda one: one.id in wrong,
        "down": lambda one: one.host is None,
        "lost": lambda one: is_ill(asked.snapshot, one),
        "moving": lambda one: one.status == "migrating" or one.id in moving,
        "ha": lambda one: one.ha,
    }
    shown = _listed(asked, every, narrowed, lambda one: (one.id not in wrong, one.name))
    return "listing.html", {"cluster": cluster, "kind": "vm", "wrong": wrong, **shown}


@viewed("/hosts", "/cluster/{name}/hosts", query=("q", "show", "page"))
def hosts(asked: Asked) -> Shown:
    cluster, known = asked.cluster_if_any, asked.snapshot.vm_by_id
    every = asked.snapshot.hosts if cluster is None else asked.snapshot.hosts_of_cluster.get(cluster.id, ())
    #: By host how hard the rules are that its VMs violate.
    wrong: dict[str, list[str]] = defaultdict(list)
    for vm, kind in _misplaced(asked).items():
        if vm in known and (place := known[vm].host):
            wrong[place].append(kind)
    narrowed: dict[str, Callable[[Host], bool]] = {
        "wrong": lambda one: one.id in wrong,
        "down": lambda one: not one.up,
    }
    shown = _listed(asked, every, narrowed, lambda one: (one.up, one.id not in wrong, one.name))
    return "listing.html", {"cluster": cluster, "kind": "host", "wrong": wrong, **shown}


@viewed("/rules", "/cluster/{name}/rules", query=("q", "page"))
def rules(asked: Asked) -> Shown:
    cluster, questions = asked.cluster_if_any, asked.questions
    plan = present_plan(asked, cluster, questions.status().enforcer) if cluster else None
    groups = questions.ask("groups list", clusters=cluster.id if cluster else None).groups
    listed = _listed(asked, groups, {}, lambda each: (not each.violated, each.name))
    return "rules.html", {"cluster": cluster, "repairs": _repairs(plan), **listed}


@viewed("/search", query=("q",))
def search(asked: Asked) -> Shown:
    word, snapshot = asked.word("q").strip(), asked.snapshot
    lists: dict[str, Iterable[Vm | Host | AffinityGroup | Cluster]] = {
        "vm": snapshot.vms,
        "host": snapshot.hosts,
        "group": snapshot.affinity_groups,
        "cluster": snapshot.clusters,
    }
    hits = [
        (kind, item)
        for kind, items in lists.items()
        for item in items
        if word and (word.casefold() in item.name.casefold() or word == item.id)
    ]
    hits.sort(key=lambda hit: (hit[1].name.casefold() != word.casefold(), len(hit[1].name), hit[1].name))
    return "search.html", {"word": word, "hits": hits[:_MOST_HITS], "count": len(hits)}


def _misplaced(asked: Asked) -> dict[str, str]:
    return misplaced(asked.questions.ask("violations").violations)


def _listed(
    asked: Asked,
    every: Iterable[Any],
    narrowed: Mapping[str, Callable[[Any], bool]],
    order: Callable[[Any], Any],
) -> dict[str, Any]:
    """A page of those with the word in their name that a list is narrowed to, and how to come to others."""
    word, show = asked.word("q").strip(), asked.word("show")
    if show and show not in narrowed:
        raise Refusal(400, f"show: {', '.join(narrowed)}")
    named = (one for one in every if word.casefold() in one.name.casefold())
    found = sorted(filter(narrowed[show], named) if show else named, key=order)
    query = {"q": word, "show": show} if show else {"q": word}
    return {**paged(asked, found), "found": len(found), "word": word, "show": show, "query": query}


@viewed("/group/{name}")
def group(asked: Asked) -> Shown:
    group = asked.named("affinity group", asked.snapshot.affinity_groups)
    (listed,) = asked.questions.ask("groups list", group=group.id).groups
    return "group.html", {"group": listed, "was": state_of_group(group)}


@viewed("/host/{name}")
def host(asked: Asked) -> Shown:
    return "host.html", {"host": asked.named("host", asked.snapshot.hosts)}


@viewed("/health")
def health(asked: Asked) -> Shown:
    answer, at = asked.site.memory.examined or (None, 0.0)
    return "health.html", {"answer": answer, "examined_at": at, "standing": asked.questions.status()}


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
