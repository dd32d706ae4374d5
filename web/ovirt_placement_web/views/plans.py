"""Plans: the one that waits or ran, what would be planned now or undo one; and what people decide on them."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import urlencode

import msgspec
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from ovirt_enforcer.orders import Misfits, order_looked_at
from ovirt_placement.answers.document import none_text
from ovirt_placement.answers.plans.text import Document, TimedStep, timed, waiting_on
from ovirt_placement.model import Cluster
from ovirt_placement.store.enforcer.history import PlanRecord
from ovirt_placement.store.enforcer.intents import IntentState
from ovirt_placement.store.orders import ALL_CLUSTERS, ApprovalStore, PauseStore
from ovirt_placement.store.sql.access import opened
from ovirt_placement_web.bounds import Refusal, sentence
from ovirt_placement_web.state.map import MapDocument, MapHost, MapVm
from ovirt_placement_web.state.plans import Life
from ovirt_placement_web.state.sources import MONTH, runs
from ovirt_placement_web.views.endpoints import (
    Act,
    Asked,
    Shown,
    Stale,
    acted,
    asked_by,
    cluster_frame,
    planned,
    viewed,
)
from ovirt_service.errors import UserError

#: Of other plans of a cluster, this many are named.
_MOST_EARLIER = 8
_MOST_SKIPPED = 50
#: Of a longer plan, this many steps have a bar: they wait for none of the others.
_MOST_DRAWN = 300
#: Of a plan that concerns more hosts, those that most migrations concern are shown.
_MOST_HOSTS = 24


@viewed()
def plan(asked: Asked) -> Shown:
    """The plan that is named; else the one of a cluster that waits or runs, else the last that has steps."""
    one, name = asked.cluster, asked.request.path_params.get("plan", "")
    enforcer = asked.questions.status().enforcer
    shown: dict[str, Any] = {
        **cluster_frame(asked, one, "Plan"),
        "enforcer": enforcer,
        "waiting": None,
        "life": None,
        "error": "",
        "newer": False,
        "earlier": (),
    }
    try:
        waiting = asked.site.past.waiting(one)
        recorded = [each for each in asked.site.past.history(MONTH) if each.cluster == one.id]
        # While none waits or runs, the last one that moved something, or would.
        steps = [each for each in recorded if each.document.get("steps")]
        record = next(iter((*filter(runs, steps), *steps, *recorded)), None)
        if wanted := name or (waiting.plan if waiting else ""):
            record = asked.site.past.plan_named(wanted)
        words = asked.site.past.words_on(record.id) if record else ()
    except UserError as error:
        return "plan.html", {**shown, "error": str(error)}
    if record is None or record.cluster != one.id:
        if name:
            raise Refusal(404, f"Cluster {one.name} has no plan {name} on record.")
        return "plan.html", {**shown, "waiting": waiting}
    pause = asked.site.past.pause(one)
    latest = not steps or steps[0].id == record.id
    known = Life(record, waiting, words, enforcer, paused=pause.sentence if pause else "", latest=latest)
    return "plan.html", {
        **shown,
        "waiting": waiting,
        "life": known,
        "newer": bool(name) and not latest and not known.waits and not known.runs,
        "earlier": [Life(each, waiting) for each in steps if each.id != record.id][:_MOST_EARLIER],
        **_course(asked, one, record.document, record),
    }


@viewed("plan", "without", repeated=("without",), kind=planned)
def plan_now(asked: Asked) -> Shown:
    """What would be planned now, perhaps with VMs left alone, compared with the plan that was looked at."""
    one = asked.cluster
    vms = _left_alone(asked, one)
    former = _former(asked, one)
    asked.check_engine()
    staying = {vm.id: "it is to be left where it is" for vm in vms}
    question = "planned", one.id, frozenset(staying)
    made = asked.questions.once(question, lambda: asked.site.made.plan(one, staying))
    again = [("without", vm.id) for vm in vms]
    compared: dict[str, Any] = {}
    if former is not None:
        again.insert(0, ("plan", former.id))
        steps = former.document.get("steps", ())
        left = [
            number for number, step in enumerate(steps, 1) if any(vm["id"] in staying for vm in step["vms"])
        ]
        compared = {
            "skipped": [(number, steps[number - 1]) for number in left],
            "depending": [(number, steps[number - 1]) for number in waiting_on(steps, left)],
            "said": [("info", _compared(former, steps, made.document["steps"]))],
        }
    nothing = "No rule is violated that it was to repair."
    if made.document.get("remaining") or made.document.get("refused"):
        nothing = "What is violated cannot be repaired, or its repair is not asked for."
    return "plan_now.html", {
        **_frame(asked, one, "New plan", made.document),
        "title": "New plan",
        "former": former,
        "vms": vms,
        "again": urlencode(again),
        "nothing": nothing,
        **compared,
        **_course(asked, one, made.document),
    }


@viewed("plan", kind=planned)
def undo(asked: Asked) -> Shown:
    """What would take back what a plan has done."""
    one = asked.cluster
    former = _former(asked, one)
    if former is None:
        raise Refusal(400, "This address names no plan.", back=f"/plan/{one.id}")
    asked.check_engine()
    made = asked.site.made.undo(former)
    nothing = "Nothing is left to undo: its VMs are where they were before it."
    if not any(each.state is IntentState.DONE for each in former.migrations):
        nothing = "Nothing can be undone yet: no migration of it has ended."
    elif made.kept:
        nothing = "Nothing of it can be undone now."
    return "plan_now.html", {
        **_frame(asked, one, "Undo", made.document),
        "title": f"Undo plan {former.id[:7]}",
        "former": former,
        "kept": made.kept,
        "nothing": nothing,
        **_course(asked, one, made.document),
    }


@viewed(kind=planned)
def room(asked: Asked) -> Shown:
    """What would let a VM start that no host takes."""
    one = asked.named("VM", asked.snapshot.vms)
    if one.host is not None:
        raise Refusal(409, f"VM {one.name} runs already.")
    asked.check_engine()
    answer = asked.questions.once(("room", one.id), lambda: asked.site.made.room(asked.snapshot, one))
    document = msgspec.to_builtins(answer.plan)
    if answer.host is None:
        found_none = "no migrations were found that let it start"
        none = none_text(answer.plan.proven, "migrations let it start", found_none)
        said = ("danger", sentence(none))
    elif not document["steps"]:
        said = ("success", f"It can start on host {answer.host.name} as things are.")
    else:
        after = "after these migrations of other VMs. Start it in the engine once they are done."
        said = ("success", f"It can start on host {answer.host.name} {after}")
    return "plan_now.html", {
        **_frame(asked, asked.snapshot.cluster_by_id[one.cluster], "Make room", document),
        "crumbs": (("Virtual machines", "/vms"), (one.name, f"/vm/{one.id}"), ("Make room", "")),
        "tabs": (),
        "title": "Room for VM",
        "vm": one,
        "said": [said],
        "because": answer.because if answer.host is None else (),
    }


def _frame(asked: Asked, cluster: Cluster, title: str, document: Document) -> dict[str, Any]:
    """What the views of plans that nobody has carried out share: nothing has come of a step yet."""
    frame, steps = cluster_frame(asked, cluster, "Plan"), document["steps"]
    crumbs = [*frame["crumbs"][:-1], ("Plan", f"/plan/{cluster.id}"), (title, "")]
    nothing: dict[str, Any] = dict.fromkeys(
        ("said", "vms", "skipped", "depending", "kept", "because", "nothing", "vm", "former"), ()
    )
    came = [(number, step, None) for number, step in enumerate(steps, 1)]
    shown = {"document": document, "came": came, "gantt": _gantt(steps), "sides": None, "misfit": ""}
    return {**frame, "crumbs": crumbs, "again": None, **nothing, **shown}


def _compared(former: PlanRecord, before: Sequence[Document], after: Sequence[Document]) -> str:
    """How a plan differs from the one that was looked at: numbers of steps of either."""
    were, are = list(map(_migration, before)), list(map(_migration, after))
    gone = [str(number) for number, move in enumerate(were, 1) if move not in are]
    new = [str(number) for number, move in enumerate(are, 1) if move not in were]
    if not gone and not new:
        return "Its migrations are the same as before."
    text = f"Compared with plan {former.id[:7]}:"
    if gone:
        text += f" no longer in it {'are its steps' if len(gone) > 1 else 'is its step'} {', '.join(gone)}."
    if new:
        text += f" New {'are steps' if len(new) > 1 else 'is step'} {', '.join(new)} below."
    return text


def _migration(step: Document) -> tuple[tuple[tuple[str, str], ...], str]:
    return tuple((vm["id"], vm["from"]["id"]) for vm in step["vms"]), step["to"]["id"]


def _left_alone(asked: Asked, cluster: Cluster) -> list[Any]:
    ids = asked.words("without")
    if len(ids) > _MOST_SKIPPED:
        raise Refusal(400, f"without: {_MOST_SKIPPED} VMs at most")
    known = asked.snapshot.vm_by_id
    if unknown := [vm for vm in ids if vm not in known or known[vm].cluster != cluster.id]:
        raise Refusal(404, f"Cluster {cluster.name} has no VM {unknown[0]}.")
    return [known[vm] for vm in ids]


def _former(asked: Asked, cluster: Cluster) -> PlanRecord | None:
    """The plan that the address names; it must be of this cluster."""
    word = asked.word("plan", "")
    record = asked.site.past.plan_named(word) if word else None
    if word and (record is None or record.cluster != cluster.id):
        raise Refusal(404, f"Cluster {cluster.name} has no plan {word} on record.")
    return record


def _course(
    asked: Asked, cluster: Cluster, document: Document, record: PlanRecord | None = None
) -> dict[str, Any]:
    """When the steps of a plan run, and where it leads from here; or why it does not fit here.

    While something of a plan on record is under way, nothing is compared.
    """
    steps, migrations = document.get("steps", ()), record.migrations if record else ()
    done = frozenset(one.step for one in migrations if one.state is IntentState.DONE and one.step)
    ahead = [step for number, step in enumerate(steps, 1) if number not in done]
    shown: dict[str, Any] = {"gantt": _gantt(steps), "sides": None, "misfit": ""}
    if ahead and not (record and runs(record)):
        end = asked.questions.map_after(cluster, document, done)
        if isinstance(end, str):
            return shown | {"misfit": end}
        shown["sides"] = _sides(asked.questions.map(cluster), end, ahead)
    return shown


class Gantt(NamedTuple):
    """When the steps of a plan run, by their numbers."""

    seconds: float
    bars: Mapping[int, TimedStep]
    left_out: int


def _gantt(steps: Sequence[Document]) -> Gantt | None:
    """The bars of a plan; None of one without steps."""
    times = timed(steps[:_MOST_DRAWN])
    if not times:
        return None
    seconds = max(one.ends for one in times) or 1.0
    return Gantt(seconds, {one.number: one for one in times}, len(steps) - len(times))


class Side(NamedTuple):
    """A host that a plan changes: its memory in percent, and its VMs."""

    host: MapHost
    memory: int
    vms: Mapping[str, MapVm]


class Sides(NamedTuple):
    """The hosts that a plan changes, before and after it; those with most migrations first."""

    hosts: tuple[tuple[Side, Side], ...]
    #: How many hosts of the plan are not shown, and how many of the cluster stay as they are.
    left_out: int
    staying: int
    #: How many VMs violate a rule, before and after.
    wrong: tuple[int, int]


def _sides(before: MapDocument, after: MapDocument, steps: Collection[Document]) -> Sides:
    counts: dict[str, int] = {}
    for step in steps:
        for host in (*(vm["from"]["id"] for vm in step["vms"]), step["to"]["id"]):
            counts[host] = counts.get(host, 0) + 1
    places = {host.id: at for at, host in enumerate(before.hosts)}
    chosen = sorted(counts.keys() & places.keys(), key=lambda host: (-counts[host], places[host]))
    hosts = tuple((_side(before, places[one]), _side(after, places[one])) for one in chosen[:_MOST_HOSTS])
    wrong = sum(bool(vm.wrong) for vm in before.vms), sum(bool(vm.wrong) for vm in after.vms)
    return Sides(hosts, len(counts) - len(hosts), len(before.hosts) - len(counts), wrong)


def _side(drawn: MapDocument, at: int) -> Side:
    host = drawn.hosts[at]
    return Side(host, host.used_percent, {vm.id: vm for vm in drawn.vms if vm.host == at})


# -- What is decided on plans, and on migrations at all.


#: How long a pause lasts, in seconds.
_HOURS = {"1": 3600.0, "4": 4 * 3600.0, "24": 24 * 3600.0, "": None}
_GONE = "this plan was made too long ago, or before the page was restarted: have it made again"


@acted
def approve(asked: Asked) -> Act:
    """Let the enforcer carry out the plan that was looked at, and no other."""
    return _decided(asked, "approve", lambda store, plan, who: store.approve(plan, set_by=who) is not None)


@acted
def refuse(asked: Asked) -> Act:
    """Have the plan that was looked at wait no more, for as long as an approval would last."""
    return _decided(
        asked, "refuse", lambda store, plan, who: bool(store.refuse(plan, set_by=who, reason=asked.reason))
    )


def _decided(asked: Asked, act: str, decide: Callable[[ApprovalStore, str, str], bool]) -> Act:
    """Where another plan has come meanwhile, none is decided on: that which was looked at waits no more."""
    cluster, plan = asked.cluster, asked.form.get("plan", "")
    back = f"/plan/{cluster.id}"

    def carry_out(who: str) -> None:
        with opened(ApprovalStore, asked.config) as store:
            waiting = next((one.plan for one in store.waiting() if one.cluster == cluster.id), None)
            if waiting != plan or not decide(store, plan, who):
                waiting = next((one.plan for one in store.waiting() if one.cluster == cluster.id), None)
                raise Stale(asked.site.past.changed(plan, waiting), back)

    return Act(act, (cluster,), carry_out, back, plan=plan)


@acted
def apply(asked: Asked) -> Act:
    """Have a plan carried out that the page has made and this person has looked at, if it still fits."""
    cluster, plan = asked.cluster, asked.form.get("plan", "")
    made = asked.site.made.known(plan)
    if made is not None and made.document["cluster"]["id"] != cluster.id:
        raise Refusal(404, f"Cluster {cluster.name} has no such plan.")

    def carry_out(who: str) -> None:
        if made is None:
            raise Stale(_GONE)
        try:
            order_looked_at(asked.config, made.document, set_by=who, undoes=made.undoes)
        except Misfits as error:
            raise Stale(str(error)) from None

    act = "undo" if made is not None and made.undoes else "apply"
    return Act(act, (cluster,), carry_out, f"/plan/{cluster.id}", plan=plan)


@acted
def pause(asked: Asked) -> Act:
    """Let the enforcer begin no migration in a cluster."""
    cluster, hours = asked.cluster, asked.form.get("hours", "")
    if hours not in _HOURS:
        raise Refusal(400, "This is not one of the times that can be chosen.")

    def carry_out(who: str) -> None:
        words = {"cluster_name": cluster.name, "reason": asked.reason, "set_by": who}
        with opened(PauseStore, asked.config) as store:
            store.pause(cluster.id, seconds=_HOURS[hours], **words)

    return Act("pause", (cluster,), carry_out, f"/cluster/{cluster.id}")


@acted
def resume(asked: Asked) -> Act:
    """Let the enforcer begin migrations in a cluster again, or in all where all were paused together."""
    cluster, of_all = asked.cluster, "all" in asked.form

    def carry_out(who: str) -> None:
        where = {"cluster": ALL_CLUSTERS} if of_all else {"cluster": cluster.id, "cluster_name": cluster.name}
        with opened(PauseStore, asked.config) as store:
            store.resume(**where, set_by=who)

    clusters = (cluster, *asked.snapshot.clusters) if of_all else (cluster,)
    return Act("resume", clusters, carry_out, f"/cluster/{cluster.id}", on="all clusters" if of_all else "")


async def examine(request: Request) -> Response:
    """Have the doctor look again; that costs the engine some requests, and changes nothing."""
    asked = await asked_by(request)
    await asked.site.bounds.plans.run(asked.session, asked.site.memory.examine, asked.config)
    return RedirectResponse(f"{asked.site.root}/health", 303)
