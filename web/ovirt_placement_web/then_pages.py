"""Why then: what was decided about a VM at some moment, and why, from what was written down at that time."""

from __future__ import annotations

import time
from typing import Any

from starlette.requests import Request

from ovirt_enforcer.history import Subject, Wanted, about
from ovirt_placement.answers.decisions import at_time
from ovirt_placement.answers.decisions.at_time import (
    DecisionsAtDocument,
    cut_text,
    distance,
    earlier_text,
    not_asked_lines,
)
from ovirt_placement.answers.decisions.record import NoRecord
from ovirt_placement.model import Vm
from ovirt_placement_web.bounds import Refusal
from ovirt_placement_web.keeper import View
from ovirt_placement_web.pages import Shown, found, viewed
from ovirt_placement_web.plan_life import life
from ovirt_placement_web.site import Site
from ovirt_placement_web.vm_pages import NOT_RECORDED
from ovirt_service.errors import UserError

#: Of plans, the last one until the moment is looked for so far back, and the next one so far ahead.
_WEEK_SECONDS = 7 * 86400.0
_DAY_SECONDS = 86400.0
_LONGEST = 64
#: Later moments cannot be written in every zone.
_YEAR_9999 = 253_370_764_800.0


@viewed("at", kind=lambda bounds, request: bounds.plans if "at" in request.query_params else bounds.views)
def then(site: Site, request: Request, view: View) -> Shown:
    """The decisions next to a moment; without one, the form that asks for it."""
    one = found(request, "VM", view.snapshot.vms)
    text = request.query_params.get("at", "").strip()
    frame = {
        "part": "Virtual machines",
        "crumbs": (("Virtual machines", "/vms"), (one.name, f"/vm/{one.id}"), ("At another time", "")),
        "vm": one,
    }
    if not text:
        return "then.html", {**frame, "at": "", "moment": None}
    try:
        moment = at_time.read_moment(text[:_LONGEST], time.time())
    except (ValueError, OverflowError, OSError) as error:
        raise Refusal(400, f"{error}.") from None
    if not 0 <= moment.seconds < _YEAR_9999:
        raise Refusal(400, "Nothing is known of that year.")
    return "then.html", {
        **frame,
        "at": text,
        "moment": moment,
        **_decided(site, view, one, moment),
        **_planned(site, one, moment),
    }


def _decided(site: Site, view: View, one: Vm, moment: at_time.Moment) -> dict[str, Any]:
    """What the proxy answered next to that moment, and what the engine's events say of it."""
    try:
        answer = site.questions.decisions_at(view, one, moment)
    except UserError as error:
        why = NOT_RECORDED if isinstance(error, NoRecord) else str(error)
        return {"attempts": (), "said": (), "asides": (), "decisions_error": why}
    asides = [] if answer.earlier is None else [earlier_text(answer.earlier)]
    asides += (
        [] if answer.events_error is None else [f"The engine's events are not known: {answer.events_error}"]
    )
    asides += [] if answer.events_since is None else [cut_text(answer.events_since)]
    return {
        "attempts": list(_attempts(answer)),
        "said": answer.events,
        "asides": asides,
        "decisions_error": "",
    }


def _attempts(answer: DecisionsAtDocument) -> list[dict[str, Any]]:
    titled = (("The last decision until then", answer.before), ("The next one", answer.after))
    return [
        {
            "title": f"{title}, {distance(one.after_seconds)}",
            "answers": [one.filters] if one.weights is None else [one.filters, one.weights],
            "notes": [
                *not_asked_lines(one.not_asked, whole=True),
                *(f"It could have started {way.sentence}" for way in one.ways),
            ],
        }
        for title, one in titled
        if one is not None
    ]


def _planned(site: Site, one: Vm, moment: at_time.Moment) -> dict[str, Any]:
    """The enforcer's plans about a VM: the last one made until that moment, and the first one after."""
    wanted = Wanted(one.id, Subject.VM)
    try:
        recorded = site.past.history(max(0.0, time.time() - moment.seconds) + _WEEK_SECONDS)
    except UserError as error:
        return {"plans_then": (), "past_error": str(error)}
    concerned = [plan for plan in recorded if about(plan, wanted)]
    until = [plan for plan in concerned if plan.created <= moment.seconds]
    later = [plan for plan in concerned if 0 < plan.created - moment.seconds <= _DAY_SECONDS]
    chosen = []
    if until:
        chosen.append(("The last plan until then", max(until, key=lambda plan: plan.created)))
    if later:
        chosen.append(("The next plan", min(later, key=lambda plan: plan.created)))
    return {
        "plans_then": [(title, life(plan, wanted=wanted)) for title, plan in chosen],
        "past_error": "",
    }
