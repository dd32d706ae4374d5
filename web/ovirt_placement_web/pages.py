"""The views: each finds what the address means, asks for answers, and renders them."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from ovirt_enforcer.history import (
    Subject,
    Wanted,
    about,
    narrowed,
    remaining,
    steps,
    steps_about,
)
from ovirt_placement.answers.conflicts import ConflictFound, ContradictionFound
from ovirt_placement.answers.decisions import decision
from ovirt_placement.answers.document import find
from ovirt_placement.answers.keys import compiled
from ovirt_placement.answers.placement import Restart, after_text, not_asked_text, restart_text
from ovirt_placement.answers.status.health import status_lines
from ovirt_placement.model import AffinityGroup, Cluster, Host, Snapshot, Vm
from ovirt_placement.store.history import PlanRecord
from ovirt_placement_web.bounds import Bound, Bounds, Refusal
from ovirt_placement_web.group_form import state_of
from ovirt_placement_web.keeper import View
from ovirt_placement_web.log_in import to_log_in
from ovirt_placement_web.site import Site, check_query, number, site_of
from ovirt_service.errors import UserError

_DAY = 86400.0
#: Of longer lists a page shows this many, and says how many there are.
MOST_ROWS = 200
_MOST_FOUND = 50

Item = TypeVar("Item")
#: What a view shows: by the name of its template.
Shown = tuple[str, dict[str, Any]]
Ask = Callable[[Site, Request, View], Shown]
Endpoint = Callable[[Request], Awaitable[Response]]


def viewed(
    *allowed: str,
    repeated: Iterable[str] = (),
    kind: Callable[[Bounds, Request], Bound] = lambda bounds, request: bounds.views,
) -> Callable[[Ask], Endpoint]:
    """A view for people who are logged in, which takes these keys of the query, some of them `repeated`.

    `kind` says what kind of work it is.
    """

    def wrap(ask: Ask) -> Endpoint:
        @functools.wraps(ask)
        async def endpoint(request: Request) -> Response:
            check_query(request, allowed, repeated)
            site = site_of(request)
            # What the page fetches by itself is no sign of a person.
            session = site.session(request, use="live-update" not in request.headers)
            if session is None:
                return to_log_in(request, site)

            def render() -> Response:
                view = site.keeper.view
                template, shown = ask(site, request, view)
                return site.page(request, template, view=view, **shown)

            return await kind(site.bounds, request).run(session, render)

        return endpoint

    return wrap


def planned(bounds: Bounds, request: Request) -> Bound:
    """The kind of work of what waits for a plan."""
    return bounds.plans


def found(request: Request, wanted: str, items: Iterable[Item]) -> Item:
    """What the address names by id or name; raises `Refusal` if there is none."""
    try:
        return find(request.path_params["name"], wanted, items)  # type: ignore[type-var]
    except UserError as error:
        raise Refusal(404, f"There is {error}.") from None


@viewed()
def clusters(site: Site, request: Request, view: View) -> Shown:
    answer = site.questions.status(view)
    others = [place for place in site.places if place.root != site.root]
    return "clusters.html", {"answer": answer, "lines": list(status_lines(answer)), "others": others}


async def summary(request: Request) -> Response:
    """The clusters, as the page of another engine shows them; without a session, where to log in."""
    check_query(request, [])
    site = site_of(request)
    view = site.keeper.view
    if not site.knows(request):
        return site.page(request, "summary.html", view=view, answer=None)
    asker = site.session(request, use=False)

    def render() -> Response:
        return site.page(request, "summary.html", view=view, answer=site.questions.status(view))

    return await site.bounds.views.run(asker, render)


@viewed()
def cluster(site: Site, request: Request, view: View) -> Shown:
    one = found(request, "cluster", view.snapshot.clusters)
    status = site.questions.status(view)
    numbers = next((each for each in status.clusters if each.cluster.id == one.id), None)
    return "cluster.html", {
        "cluster": one,
        "numbers": numbers,
        "enforcer": status.enforcer,
        "violations": site.questions.violations(view, one).violations,
        "conflicts": site.questions.conflicts(view, one).clusters,
        "groups": site.questions.groups(view, one).groups,
        "hosts": view.snapshot.hosts_of_cluster.get(one.id, ()),
        "vms_of_host": view.snapshot.vms_of_host,
        "most": MOST_ROWS,
    }


@viewed()
def vm(site: Site, request: Request, view: View) -> Shown:
    one = found(request, "VM", view.snapshot.vms)
    questions = site.questions
    why, where = questions.why(view, one), questions.where(view, one)
    keys = questions.keys_of_vm(view, one)
    accepted = {each.host.id: each for each in where.hosts}
    order = {each.host.id: number for number, each in enumerate(where.hosts)}
    hosts = sorted(why.hosts, key=lambda each: (order.get(each.host.id, len(order)), each.host.name))
    return "vm.html", {
        "vm": one,
        "cluster": why.cluster,
        "host": why.host,
        "hosts": hosts,
        "ranked": accepted,
        "moves_with": why.moves_with,
        "notes": [
            *(note.sentence for note in why.notes),
            *(not_asked_text(one, why.cluster.name) for one in why.not_asked),
        ],
        "groups": questions.groups(view, vm=one.id).groups,
        "violations": questions.violations(view, vm=one.id).violations,
        "keys": compiled.vm_table(keys),
        "keys_ignored": list(compiled.ignored_lines(keys)),
        "coming_to": [host_of(view.snapshot, each) for each in view.snapshot.pending_hosts.get(one.id, ())],
        "restart": [] if why.restart is None else _restart(one.name, why.restart),
        **_decided(site, view, one),
        **_past(site, Wanted(one.id, Subject.VM), _DAY),
    }


@viewed()
def host(site: Site, request: Request, view: View) -> Shown:
    one = found(request, "host", view.snapshot.hosts)
    keys = site.questions.keys_of_host(view, one)
    return "host.html", {
        "host": one,
        "cluster": view.snapshot.cluster_by_id[one.cluster],
        "vms": sorted(view.snapshot.vms_of_host.get(one.id, ()), key=lambda vm: vm.name),
        "groups": site.questions.groups(view, host=one.id).groups,
        "violations": site.questions.violations(view, host=one.id).violations,
        "keys": compiled.host_table(keys),
        "ratios": compiled.ratios_text(keys),
    }


@viewed()
def group(site: Site, request: Request, view: View) -> Shown:
    one = found(request, "affinity group", view.snapshot.affinity_groups)
    listed = site.questions.groups(view, group=one.id).groups
    found_clashes = site.questions.conflicts(view, view.snapshot.cluster_by_id[one.cluster]).clusters
    clashes: list[ConflictFound | ContradictionFound] = []
    for of_cluster in found_clashes:
        clashes += [*of_cluster.conflicts, *of_cluster.contradictions]
    return "group.html", {
        "group": listed[0],
        "was": state_of(one),
        "clashes": [each for each in clashes if any(other.id == one.id for other in each.groups)],
        "violations": site.questions.violations(view, group=one.id).violations,
        "hosts_of": {at.vm.id: at.host for at in listed[0].running},
    }


@viewed("q", "days")
def history(site: Site, request: Request, view: View) -> Shown:
    days = number(request, "days", 30)
    name = request.query_params.get("q", "").strip()
    return "history.html", {"name": name, "days": days, **_past(site, Wanted(name), days * _DAY)}


@viewed()
def doctor(site: Site, request: Request, view: View) -> Shown:
    answer, at = site.questions.examined or (None, 0.0)
    return "doctor.html", {"answer": answer, "examined_at": at}


@viewed("q")
def search(site: Site, request: Request, view: View) -> Shown:
    word = request.query_params.get("q", "").strip()
    lists: list[tuple[str, str, Iterable[Vm | Host | AffinityGroup | Cluster]]] = [
        ("vm", "VM", view.snapshot.vms),
        ("host", "host", view.snapshot.hosts),
        ("group", "affinity group", view.snapshot.affinity_groups),
        ("cluster", "cluster", view.snapshot.clusters),
    ]
    hits = [
        (kind, noun, one)
        for kind, noun, items in lists
        for one in items
        if word and (word.casefold() in one.name.casefold() or word == one.id)
    ]
    hits.sort(key=lambda hit: (hit[2].name.casefold() != word.casefold(), len(hit[2].name), hit[2].name))
    return "search.html", {"word": word, "hits": hits[:_MOST_FOUND], "count": len(hits)}


def start(request: Request) -> Response:
    """The address without its last slash leads on to the first view."""
    return RedirectResponse(f"{site_of(request).root}/", 307)


def host_of(snapshot: Snapshot, identity: str) -> Any:
    return snapshot.host_by_id.get(identity)


def _restart(name: str, restart: Restart) -> list[str]:
    return [restart_text(name, restart), *(after_text(name, one) for one in restart.after)]


def _decided(site: Site, view: View, one: Vm) -> dict[str, Any]:
    """What the proxy answered last about a VM, or why that is not known."""
    try:
        found = site.questions.last_decisions(view, one).decisions
    except UserError as error:
        return {"decisions": (), "decisions_error": str(error)}
    return {
        "decisions": [
            (
                next(decision.decision_lines(each)),
                each,
                decision.decision_headers(each),
                decision.decision_rows(each),
            )
            for each in found
        ],
        "decisions_error": "",
    }


def _past(site: Site, wanted: Wanted, seconds: float) -> dict[str, Any]:
    """What was decided about something lately, or why that is not known."""
    try:
        found = site.past.history(seconds)
    except UserError as error:
        return {"plans": (), "past_error": str(error)}
    plans = [narrowed(plan, wanted) for plan in found if not wanted.name or about(plan, wanted)]
    return {"plans": [reported(plan, wanted) for plan in plans[:MOST_ROWS]], "past_error": ""}


def reported(plan: PlanRecord, wanted: Wanted) -> tuple[PlanRecord, list[tuple[int, Any]], tuple[Any, ...]]:
    """A plan, its steps with their numbers, and what it leaves unrepaired."""
    known = steps(plan)
    return plan, [(number, known[number - 1]) for number in steps_about(plan, wanted)], remaining(plan)
