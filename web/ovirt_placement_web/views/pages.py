"""What views share: who asks, what an address means, the frame of a cluster; and the simplest views."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, TypeVar
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from ovirt_placement.answers.document import find, safe_word
from ovirt_placement.answers.groups.listing import groups_list
from ovirt_placement.answers.keys import compiled
from ovirt_placement.answers.status.clusters import ClusterStatus
from ovirt_placement.answers.status.health import Health, judge, status_lines
from ovirt_placement.answers.violations import violations
from ovirt_placement.model import Cluster
from ovirt_placement.model.names import counted
from ovirt_placement_web.bounds import Bound, Bounds, Refusal
from ovirt_placement_web.log_in import to_log_in
from ovirt_placement_web.site import Site, check_query, number, site_of
from ovirt_placement_web.state.keeper import View
from ovirt_placement_web.state.map import misplaced
from ovirt_service.errors import UserError

#: Of longer lists a page shows this many, and says how many there are.
MOST_ROWS = 200
#: Rows of a page of a list that has several.
_PAGE_ROWS = 50

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


def paged(request: Request, items: Sequence[Any]) -> dict[str, Any]:
    """Those of a page of a long list, the number of the page, and that of the last."""
    last = max(1, -(-len(items) // _PAGE_ROWS))
    page = number(request, "page", last)
    return {"items": items[(page - 1) * _PAGE_ROWS : page * _PAGE_ROWS], "number": page, "last": last}


def check_engine(view: View) -> None:
    """Raise `Refusal` while the engine is away: a plan of old is worth nothing."""
    if view.error is not None:
        raise Refusal(503, f"The engine does not answer, so no plan can be made: {view.error}.")


async def summary(request: Request) -> Response:
    """The clusters, as the page of another engine shows them; without a session, where to log in."""
    check_query(request, [])
    site = site_of(request)
    view = site.keeper.view
    if not site.knows(request):
        return site.page(request, "summary.html", view=view, answer=None)
    asker = site.session(request, use=False)

    def render() -> Response:
        answer = site.questions.status(view)
        states = {one.cluster.id: condition(one) for one in answer.clusters}
        return site.page(request, "summary.html", view=view, answer=answer, states=states)

    return await site.bounds.views.run(asker, render)


@viewed()
def host(site: Site, request: Request, view: View) -> Shown:
    one = found(request, "host", view.snapshot.hosts)
    keys = site.questions.about(view, compiled.keys_of_host, one)
    violated = site.questions.of_clusters(view, violations, host=one.id).violations
    return "host.html", {
        "part": "Hosts",
        "crumbs": (("Hosts", "/hosts"), (one.name, "")),
        "host": one,
        "cluster": view.snapshot.cluster_by_id[one.cluster],
        "vms": sorted(view.snapshot.vms_of_host.get(one.id, ()), key=lambda vm: vm.name),
        "groups": site.questions.of_clusters(view, groups_list, host=one.id).groups,
        "violations": violated,
        "wrong": misplaced(violated),
        "keys": compiled.host_table(keys),
        "ratios": compiled.ratios_text(keys),
    }


@viewed()
def health(site: Site, request: Request, view: View) -> Shown:
    answer, at = site.questions.examined or (None, 0.0)
    status = site.questions.status(view)
    shown = {"answer": answer, "examined_at": at, "standing": status, "lines": list(status_lines(status))}
    return "health.html", {"part": "Health", **shown}


def start(request: Request) -> Response:
    """The address without its last slash leads on to the first view."""
    return RedirectResponse(f"{site_of(request).root}/", 307)


def list_frame(site: Site, request: Request, view: View, part: str) -> dict[str, Any]:
    """Where a list stands: of all, or of the cluster that the address names."""
    if "name" not in request.path_params:
        return {"part": part, "cluster": None, "place": f"/{part.lower()}"}
    one = found(request, "cluster", view.snapshot.clusters)
    return {**cluster_frame(site, view, one, part), "place": f"/cluster/{one.id}/{part.lower()}"}


def cluster_frame(site: Site, view: View, cluster: Cluster, tab: str) -> dict[str, Any]:
    """Where a view of a cluster stands: its breadcrumb, and the tabs with what they count."""
    numbers = next(one for one in site.questions.status(view).clusters if one.cluster.id == cluster.id)
    enforcer = site.questions.status(view).enforcer
    waiting = sum(one.cluster.id == cluster.id for one in enforcer.waiting) if enforcer else 0
    name = quote(cluster.id, safe="")
    tone = "red" if numbers.hard_violations else "orange"
    down = numbers.hosts - numbers.hosts_up
    crumbs = [("Clusters", "/"), (cluster.name, "" if tab == "Overview" else f"/cluster/{name}")]
    return {
        "part": "Clusters",
        "cluster": cluster,
        "tab": tab,
        "crumbs": crumbs if tab == "Overview" else [*crumbs, (tab, "")],
        "tabs": (
            ("Overview", f"/cluster/{name}", 0, ""),
            ("Map", f"/map/{name}", 0, ""),
            ("Rules", f"/cluster/{name}/rules", numbers.hard_violations + numbers.soft_violations, tone),
            ("Plan", f"/plan/{name}", waiting, "orange"),
            ("Hosts", f"/cluster/{name}/hosts", down, "orange"),
            ("Failures", f"/ha/{name}", int(numbers.ha_safe is False), "red"),
            ("Maintenance", f"/maintenance/{name}", 0, ""),
            ("History", f"/cluster/{name}/history", 0, ""),
        ),
    }


#: How each health is coloured.
HEALTH_TONES = {Health.HEALTHY: "success", Health.DEGRADED: "warning", Health.UNHEALTHY: "danger"}


def condition(one: ClusterStatus) -> tuple[str, str]:
    """The state of a cluster in a few words, and how it is coloured."""
    if one.lost:
        return (f"{counted(len(one.lost), 'HA VM')} not running", "danger")
    if one.ha_reservation and one.ha_safe is False:
        return (safe_word(one.ha_safe).capitalize(), "danger")
    if number := one.hard_violations:
        return (f"{number} {'rule' if number == 1 else 'rules'} violated", "danger")
    if one.doubt:
        return ("Not known", "warning")
    if number := one.soft_violations:
        return (f"{number} soft {'rule' if number == 1 else 'rules'} violated", "warning")
    health, _ = judge(None, (), (one,), None, None)
    return (health.capitalize(), HEALTH_TONES[health])
