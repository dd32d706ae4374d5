"""The views of plans: the one that waits, what would be planned now, and what would take one back."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import msgspec
from starlette.requests import Request

from ovirt_placement.answers.document import none_text
from ovirt_placement.answers.plans.reading import Document, waiting_on
from ovirt_placement.model import Cluster
from ovirt_placement.store.history import PlanRecord
from ovirt_placement.store.intents import IntentState
from ovirt_placement_web.bounds import Refusal
from ovirt_placement_web.keeper import View
from ovirt_placement_web.made_plans import Difference, MadePlan, difference
from ovirt_placement_web.pages import Shown, cluster_frame, found, planned, viewed
from ovirt_placement_web.past import MONTH
from ovirt_placement_web.plan_drawing import gantt, sides
from ovirt_placement_web.plan_life import life
from ovirt_placement_web.site import Site
from ovirt_service.errors import UserError

#: Of other plans of a cluster, this many are named.
_MOST_EARLIER = 8
_ENDED = (IntentState.DONE, IntentState.FAILED)
_MOST_SKIPPED = 50


@viewed()
def plan(site: Site, request: Request, view: View) -> Shown:
    """The plan of a cluster that waits or runs, else the last one that has steps."""
    return _shown(site, request, view, "")


@viewed()
def plan_named(site: Site, request: Request, view: View) -> Shown:
    """One plan, whatever has become of it."""
    return _shown(site, request, view, request.path_params["plan"])


def _shown(site: Site, request: Request, view: View, name: str) -> Shown:
    one = found(request, "cluster", view.snapshot.clusters)
    enforcer = site.questions.status(view).enforcer
    shown: dict[str, Any] = {
        **cluster_frame(site, view, one, "Plan"),
        "enforcer": enforcer,
        "waiting": None,
        "life": None,
        "error": "",
        "newer": False,
        "earlier": (),
    }
    try:
        waiting = site.past.waiting(one)
        recorded = [each for each in site.past.history(MONTH) if each.cluster == one.id]
        # While none waits or runs, the last one that moved something, or would.
        steps = [each for each in recorded if each.document.get("steps")]
        running = [each for each in steps if any(move.state not in _ENDED for move in each.migrations)]
        wanted = name or (waiting.plan if waiting else next(iter((*running, *steps, *recorded)), None))
        record = wanted if isinstance(wanted, PlanRecord) else site.past.plan_named(wanted or "")
        words = site.past.words_on(record.id) if record else ()
    except UserError as error:
        return "plan.html", {**shown, "error": str(error)}
    if record is None or record.cluster != one.id:
        if name:
            raise Refusal(404, f"Cluster {one.name} has no plan {name} on record.")
        return "plan.html", {**shown, "waiting": waiting}
    pause = site.past.pause(one)
    latest = not steps or steps[0].id == record.id
    known = life(record, waiting, words, enforcer, paused=pause.sentence if pause else "", latest=latest)
    shown |= {
        "waiting": waiting,
        "life": known,
        "newer": bool(name) and not latest and not known.waits and not known.runs,
        "earlier": [life(each, waiting) for each in steps if each.id != record.id][:_MOST_EARLIER],
        **_course_of(site, view, one, record),
    }
    return "plan.html", shown


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
    said = []
    if former is not None and (between := shown["difference"]):
        same = not between.gone and not between.new
        said.append(
            ("info", "Its migrations are the same as before." if same else _compared(between, former))
        )
    return "plan_now.html", {
        **_frame(site, view, one, "New plan"),
        "title": "New plan",
        "vms": vms,
        "again": again,
        "said": said,
        "nothing": _nothing(made.document),
        **shown,
        **_made(site, view, one, made),
    }


@viewed("plan", kind=planned)
def undo(site: Site, request: Request, view: View) -> Shown:
    """What would take back what a plan has done."""
    one = found(request, "cluster", view.snapshot.clusters)
    former = _former(site, request, one)
    if former is None:
        raise Refusal(400, "This address names no plan.", back=f"/plan/{one.id}")
    _check_engine(view)
    made = site.made.undo(former)
    nothing = "Nothing is left to undo: its VMs are where they were before it."
    if not any(each.state is IntentState.DONE for each in former.migrations):
        nothing = "Nothing can be undone yet: no migration of it has ended."
    elif made.kept:
        nothing = "Nothing of it can be undone now."
    return "plan_now.html", {
        **_frame(site, view, one, "Undo"),
        "title": f"Undo plan {former.id[:7]}",
        "former": former,
        "kept": made.kept,
        "nothing": nothing,
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
    if answer.host is None:
        found_none = "no migrations were found that let it start"
        none = none_text(answer.plan.proven, "migrations let it start", found_none)
        said = [("danger", f"{none[0].upper()}{none[1:]}.")]
    elif not document["steps"]:
        said = [("success", f"It can start on host {answer.host.name} as things are.")]
    else:
        after = "after these migrations of other VMs. Start it in the engine once they are done."
        said = [("success", f"It can start on host {answer.host.name} {after}")]
    cluster = view.snapshot.cluster_by_id[one.cluster]
    return "plan_now.html", {
        **_frame(site, view, cluster, "Make room"),
        "part": "Virtual machines",
        "crumbs": (("Virtual machines", "/vms"), (one.name, f"/vm/{one.id}"), ("Make room", "")),
        "tabs": (),
        "title": "Room for VM",
        "vm": one,
        "said": said,
        "document": document,
        "because": answer.because if answer.host is None else (),
        "came": [(number, step, None) for number, step in enumerate(document["steps"], 1)],
        "gantt": gantt(document["steps"]),
        "sides": None,
        "misfit": "",
    }


def _frame(site: Site, view: View, cluster: Cluster, title: str) -> dict[str, Any]:
    """What the views of plans that nobody has carried out share."""
    frame = cluster_frame(site, view, cluster, "Plan")
    crumbs = [*frame["crumbs"][:-1], ("Plan", f"/plan/{cluster.id}"), (title, "")]
    nothing: dict[str, Any] = dict.fromkeys(
        ("said", "vms", "skipped", "depending", "kept", "because", "nothing", "vm", "former"), ()
    )
    return {**frame, "crumbs": crumbs, "again": None, **nothing}


def _nothing(document: Document) -> str:
    if document.get("remaining") or document.get("refused"):
        return "What is violated cannot be repaired, or its repair is not asked for."
    return "No rule is violated that it was to repair."


def _compared(between: Difference, former: PlanRecord) -> str:
    """How a plan differs from the one that was looked at."""
    text = f"Compared with plan {former.id[:7]}: "
    if between.gone:
        text += f"no longer in it {'are its steps' if len(between.gone) > 1 else 'is its step'} "
        text += f"{', '.join(map(str, between.gone))}. "
    if between.new:
        text += f"New {'are steps' if len(between.new) > 1 else 'is step'} "
        text += f"{', '.join(map(str, between.new))} below."
    return text.strip()


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
    came = [(number, step, None) for number, step in enumerate(document["steps"], 1)]
    return {"document": document, "came": came, **_course(site, view, cluster, document, frozenset())}


def _course_of(site: Site, view: View, cluster: Cluster, record: PlanRecord) -> dict[str, Any]:
    """Of a plan on record; once something of it is under way or was refused, nothing is compared."""
    done = frozenset(one.step for one in record.migrations if one.state is IntentState.DONE and one.step)
    if any(one.state not in _ENDED for one in record.migrations):
        return {"gantt": gantt(record.document.get("steps", ())), "sides": None, "misfit": ""}
    return _course(site, view, cluster, record.document, done)


def _course(
    site: Site, view: View, cluster: Cluster, document: Document, done: frozenset[int]
) -> dict[str, Any]:
    """When the steps of a plan run, and where it leads from here; or why it does not fit here."""
    steps = document.get("steps", ())
    ahead = [step for number, step in enumerate(steps, 1) if number not in done]
    shown: dict[str, Any] = {"gantt": gantt(steps), "sides": None, "misfit": ""}
    if not ahead:
        return shown
    end = site.questions.map_after(view, cluster, document, done)
    if isinstance(end, str):
        return {**shown, "misfit": end}
    return {**shown, "sides": sides(site.questions.map(view, cluster), end, ahead)}
