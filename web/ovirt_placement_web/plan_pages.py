"""The views of plans: the one that waits, what would be planned now, and what would take one back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

import msgspec
from starlette.requests import Request

from ovirt_enforcer.history import Wanted
from ovirt_placement.answers.plans.reading import Document, timed, waiting_on
from ovirt_placement.model import Cluster
from ovirt_placement.store.history import PlanRecord
from ovirt_placement.store.intents import IntentState
from ovirt_placement_web.bounds import Refusal
from ovirt_placement_web.keeper import View
from ovirt_placement_web.made_plans import MadePlan, difference
from ovirt_placement_web.pages import Shown, found, planned, reported, viewed
from ovirt_placement_web.past import MONTH
from ovirt_placement_web.sides import sides
from ovirt_placement_web.site import Site
from ovirt_placement_web.timeline import Timeline, timeline
from ovirt_service.errors import UserError

#: Of a longer plan, this many steps are drawn.
_MOST_DRAWN = 300
_ENDED = (IntentState.DONE, IntentState.FAILED)
_MOST_SKIPPED = 50


@viewed()
def plan(site: Site, request: Request, view: View) -> Shown:
    """The plan that waits in a cluster, else the last one that was made there."""
    one = found(request, "cluster", view.snapshot.clusters)
    shown: dict[str, Any] = {
        "cluster": one,
        "enforcer": site.questions.status(view).enforcer,
        "waiting": None,
        "plan": None,
        "words": (),
        "error": "",
    }
    try:
        waiting = site.past.waiting(one)
        recorded = site.past.plan_named(waiting.plan) if waiting else None
        if waiting is None:
            past = site.past.history(MONTH)
            recorded = next((each for each in past if each.cluster == one.id), None)
        words = site.past.words_on(recorded.id) if recorded else ()
    except UserError as error:
        return "plan.html", {**shown, "error": str(error)}
    if recorded is None:
        return "plan.html", {**shown, "waiting": waiting}
    course = _course_of(site, view, one, recorded)
    reporting = {"waiting": waiting, "plan": reported(recorded, Wanted()), "words": words}
    return "plan.html", {**shown, **reporting, **course, "undoable": _has_done(recorded)}


@viewed("plan", "without", repeated=("without",), kind=planned)
def plan_now(site: Site, request: Request, view: View) -> Shown:
    """What would be planned now, perhaps with VMs left alone, compared with the plan that was looked at."""
    one = found(request, "cluster", view.snapshot.clusters)
    vms = _left_alone(request, view, one)
    former = _former(site, request, one)
    _check_engine(view)
    made = site.questions.planned(view, site.made, one, {vm.id: "it is to be left where it is" for vm in vms})
    shown: dict[str, Any] = {"former": former, "skipped": (), "depending": (), "difference": None}
    if former is not None:
        steps = former.document.get("steps", ())
        ids = {vm.id for vm in vms}
        skipped = [number for number, step in enumerate(steps, 1) if {vm["id"] for vm in step["vms"]} & ids]
        shown |= {
            "skipped": [(number, steps[number - 1]) for number in skipped],
            "depending": [(number, steps[number - 1]) for number in waiting_on(steps, skipped)],
            "difference": difference(steps, made.document["steps"]),
        }
    held = [("without", vm.id) for vm in vms]
    again = urlencode([*([] if former is None else [("plan", former.id)]), *held])
    return "plan_now.html", {
        "cluster": one,
        "vms": vms,
        "again": again,
        **shown,
        **_made(site, view, one, made),
    }


@viewed("plan", kind=planned)
def undo(site: Site, request: Request, view: View) -> Shown:
    """What would take back what a plan has done."""
    one = found(request, "cluster", view.snapshot.clusters)
    former = _former(site, request, one)
    if former is None:
        raise Refusal(400, "Name the plan: ?plan=ID")
    _check_engine(view)
    made = site.made.undo(former)
    return "plan_undo.html", {
        "cluster": one,
        "former": former,
        "begun": _has_done(former),
        **_made(site, view, one, made),
    }


@viewed(kind=planned)
def room(site: Site, request: Request, view: View) -> Shown:
    """What would let a VM start that no host takes."""
    one = found(request, "VM", view.snapshot.vms)
    if one.host is not None:
        raise Refusal(409, f"VM {one.name} runs already.")
    _check_engine(view)
    answer = site.questions.room(view, site.made, one)
    document = msgspec.to_builtins(answer.plan)
    steps = document["steps"]
    return "room.html", {
        "vm": one,
        "cluster": view.snapshot.cluster_by_id[one.cluster],
        "answer": answer,
        "document": document,
        "numbered": list(enumerate(steps, 1)),
        "drawing": _drawing(steps),
    }


def _check_engine(view: View) -> None:
    """Raise `Refusal` while the engine is away: a plan of old is worth nothing."""
    if view.error is not None:
        raise Refusal(503, f"The engine does not answer, so no plan can be made: {view.error}.")


def _left_alone(request: Request, view: View, cluster: Cluster) -> list[Any]:
    ids = dict.fromkeys(request.query_params.getlist("without"))
    if len(ids) > _MOST_SKIPPED:
        raise Refusal(400, f"without: {_MOST_SKIPPED} VMs at most")
    known = view.snapshot.vm_by_id
    if unknown := [vm for vm in ids if vm not in known or known[vm].cluster != cluster.id]:
        raise Refusal(404, f"Cluster {cluster.name} has no VM {unknown[0]}.")
    return [known[vm] for vm in ids]


def _former(site: Site, request: Request, cluster: Cluster) -> PlanRecord | None:
    """The plan that the address names; it must be of this cluster."""
    word = request.query_params.get("plan", "")
    record = site.past.plan_named(word) if word else None
    if word and (record is None or record.cluster != cluster.id):
        raise Refusal(404, f"Cluster {cluster.name} has no plan {word} on record.")
    return record


def _made(site: Site, view: View, cluster: Cluster, made: MadePlan) -> dict[str, Any]:
    document = made.document
    numbered = list(enumerate(document["steps"], 1))
    course = _course(site, view, cluster, document, frozenset())
    return {"made": made, "document": document, "numbered": numbered, **course}


def _course_of(site: Site, view: View, cluster: Cluster, record: PlanRecord) -> dict[str, Any]:
    """Of a plan on record; while something of it is under way, nothing is compared."""
    done = frozenset(one.step for one in record.migrations if one.state is IntentState.DONE and one.step)
    if any(one.state not in _ENDED for one in record.migrations):
        return {"drawing": _drawing(record.document.get("steps", ())), "sides": None, "misfit": ""}
    return _course(site, view, cluster, record.document, done)


def _course(
    site: Site, view: View, cluster: Cluster, document: Document, done: frozenset[int]
) -> dict[str, Any]:
    """The timeline of a plan, and where it leads from here; or why it does not fit here."""
    steps = document.get("steps", ())
    ahead = [step for number, step in enumerate(steps, 1) if number not in done]
    shown: dict[str, Any] = {"drawing": _drawing(steps), "sides": None, "misfit": ""}
    if not ahead:
        return shown
    end = site.questions.map_after(view, cluster, document, done)
    if isinstance(end, str):
        return {**shown, "misfit": end}
    return {**shown, "sides": sides(site.questions.map(view, cluster), end, ahead)}


def _drawing(steps: Sequence[Document]) -> Timeline | None:
    """The first steps of a plan, which wait for none of the others; None of one without steps."""
    some = steps[:_MOST_DRAWN]
    return timeline(some, timed(some)) if some else None


def _has_done(record: PlanRecord) -> bool:
    return any(one.state is IntentState.DONE for one in record.migrations)
