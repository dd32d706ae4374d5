"""What was decided: lately, about all or about one thing; and at some moment, from what was recorded then."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from starlette.requests import Request

from ovirt_enforcer.history import Subject, Wanted, about
from ovirt_placement.answers.decisions.at_time import (
    DecisionsAtDocument,
    cut_text,
    distance,
    earlier_text,
    not_asked_lines,
    read_moment,
)
from ovirt_placement.answers.decisions.record import NoRecord
from ovirt_placement.model import Cluster, Vm
from ovirt_placement_web.bounds import Refusal
from ovirt_placement_web.site import Site, number
from ovirt_placement_web.state.keeper import View
from ovirt_placement_web.state.past import DAY
from ovirt_placement_web.state.plan_life import life
from ovirt_placement_web.views.pages import MOST_ROWS, Shown, found, list_frame, viewed
from ovirt_service.errors import UserError

#: Why the proxy's decisions are not shown; how to have them is in docs/web.md.
NOT_RECORDED = (
    "this page cannot read a record of the scheduler proxy: it runs on another machine, records nothing, or"
    " does not let the page read it"
)
_LONGEST = 64
#: Later moments cannot be written in every zone.
_YEAR_9999 = 253_370_764_800.0


@viewed("q", "days")
def history(site: Site, request: Request, view: View) -> Shown:
    """What was decided, in all clusters or in one."""
    frame, days = list_frame(site, request, view, "History"), number(request, "days", 30)
    name = request.query_params.get("q", "").strip()
    plans = past_plans(site, view, Wanted(name), days * DAY, frame["cluster"])
    return "history.html", {**frame, "name": name, "days": days, **plans}


def past_plans(
    site: Site, view: View, wanted: Wanted, seconds: float, cluster: Cluster | None = None
) -> dict[str, Any]:
    """What was decided about something lately, or why that is not known."""
    try:
        recorded = site.past.history(seconds)
        waiting = {one.id: site.past.waiting(one) for one in view.snapshot.clusters}
    except UserError as error:
        return {"plans": (), "past_error": str(error)}
    latest = {one.cluster: one.id for one in reversed(recorded)}
    plans = [
        life(one, waiting.get(one.cluster), latest=latest[one.cluster] == one.id, wanted=wanted)
        for one in recorded
        if (cluster is None or one.cluster == cluster.id) and (not wanted.name or about(one, wanted))
    ]
    return {"plans": plans[:MOST_ROWS], "past_error": ""}


def last_decisions(site: Site, view: View, one: Vm) -> dict[str, Any]:
    """What the proxy answered last about a VM, or why that is not known."""
    try:
        return {"decisions": site.questions.last_decisions(view, one).decisions, "decisions_error": ""}
    except UserError as error:
        return {"decisions": (), "decisions_error": _why_unknown(error)}


def _why_unknown(error: UserError) -> str:
    return NOT_RECORDED if isinstance(error, NoRecord) else str(error)


@viewed("at", kind=lambda bounds, request: bounds.plans if "at" in request.query_params else bounds.views)
def then(site: Site, request: Request, view: View) -> Shown:
    """The decisions about a VM next to a moment; without one, the form that asks for it."""
    one = found(request, "VM", view.snapshot.vms)
    text = request.query_params.get("at", "").strip()
    frame = {
        "part": "Virtual machines",
        "crumbs": (("Virtual machines", "/vms"), (one.name, f"/vm/{one.id}"), ("At another time", "")),
        "vm": one,
        "at": text,
    }
    if not text:
        return "then.html", {**frame, "moment": None}
    try:
        moment = read_moment(text[:_LONGEST], time.time())
    except (ValueError, OverflowError, OSError) as error:
        raise Refusal(400, f"{error}.") from None
    if not 0 <= moment < _YEAR_9999:
        raise Refusal(400, "Nothing is known of that year.")
    shown = {"moment": moment, **_decided(site, view, one, moment), **_planned(site, one, moment)}
    return "then.html", {**frame, **shown}


def _decided(site: Site, view: View, one: Vm, moment: float) -> dict[str, Any]:
    """What the proxy answered next to that moment, and what the engine's events say of it."""
    try:
        answer = site.questions.decisions_at(view, one, moment)
    except UserError as error:
        return {"attempts": (), "said": (), "asides": (), "decisions_error": _why_unknown(error)}
    asides = [
        *([] if answer.earlier is None else [earlier_text(answer.earlier)]),
        *([f"The engine's events are not known: {answer.events_error}"] if answer.events_error else []),
        *([] if answer.events_since is None else [cut_text(answer.events_since)]),
    ]
    attempts = list(_attempts(answer))
    return {"attempts": attempts, "said": answer.events, "asides": asides, "decisions_error": ""}


def _attempts(answer: DecisionsAtDocument) -> Iterator[dict[str, Any]]:
    for title, one in (("The last decision until then", answer.before), ("The next one", answer.after)):
        if one is not None:
            ways = (f"It could have started {way.sentence}" for way in one.ways)
            yield {
                "title": f"{title}, {distance(one.after_seconds)}",
                "answers": [one.filters] if one.weights is None else [one.filters, one.weights],
                "notes": [*not_asked_lines(one.not_asked, whole=True), *ways],
            }


def _planned(site: Site, one: Vm, moment: float) -> dict[str, Any]:
    """The enforcer's plans about a VM: the last one until a moment, and the next of the day after."""
    wanted = Wanted(one.id, Subject.VM)
    try:
        recorded = site.past.history(max(0.0, time.time() - moment) + 7 * DAY)
    except UserError as error:
        return {"plans_then": (), "past_error": str(error)}
    concerned = sorted((plan for plan in recorded if about(plan, wanted)), key=lambda plan: plan.created)
    until = [plan for plan in concerned if plan.created <= moment][-1:]
    later = [plan for plan in concerned if 0 < plan.created - moment <= DAY][:1]
    titled = [("The last plan until then", plan) for plan in until]
    titled += [("The next plan", plan) for plan in later]
    plans = [(title, life(plan, wanted=wanted)) for title, plan in titled]
    return {"plans_then": plans, "past_error": ""}
