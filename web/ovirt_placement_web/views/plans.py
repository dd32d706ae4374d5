"""Plans: the one that waits or ran, what would be planned now or undo one; and what people decide on them."""

from collections import Counter
from collections.abc import Collection
from typing import Any
from urllib.parse import urlencode

import msgspec
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from ovirt_enforcer.orders import order_looked_at
from ovirt_placement.answers.plans.text import Document, timed, waiting_on
from ovirt_placement.model import Cluster
from ovirt_placement.store.enforcer.history import PlanRecord
from ovirt_placement.store.enforcer.intents import IntentState
from ovirt_placement.store.orders import ALL_CLUSTERS, ApprovalStore, PauseStore
from ovirt_placement.store.sql.access import opened
from ovirt_placement_web.bounds import Refusal
from ovirt_placement_web.state.map import MapDocument
from ovirt_placement_web.state.plans import Life
from ovirt_placement_web.state.sources import MONTH, runs
from ovirt_placement_web.views.endpoints import Act, Asked, Shown, Stale, acted, asked_by, viewed
from ovirt_service.errors import UserError

_MOST_EARLIER = 8
_MOST_SKIPPED = 50
#: Of a longer plan, this many steps have a bar: they wait for none of the others.
_MOST_DRAWN = 300
#: Of a plan that concerns more hosts, those that most migrations concern are shown.
_MOST_HOSTS = 24


@viewed("/plan/{name}", "/plans/{name}/{plan}")
def plan(asked: Asked) -> Shown:
    """The plan that is named; else the one of a cluster that waits or runs, else the last that has steps."""
    cluster, name, past = asked.cluster, asked.request.path_params.get("plan", ""), asked.site.past
    enforcer = asked.questions.status().enforcer
    shown = {"cluster": cluster, "enforcer": enforcer, "waiting": None, "life": None, "error": ""}
    try:
        waiting, recorded = past.waiting().get(cluster.id), past.history(MONTH, cluster)
        # While none waits or runs, the last one that moved something, or would.
        steps = [each for each in recorded if each.steps]
        record = next(iter((*filter(runs, steps), *steps, *recorded)), None)
        if wanted := name or (waiting.plan if waiting else ""):
            record = past.plan_named(wanted)
        words = past.words_on(record.id) if record else ()
    except UserError as error:
        return "plan.html", {**shown, "error": str(error)}
    if record is None or record.cluster != cluster.id:
        if name:
            raise Refusal(404, f"Cluster {cluster.name} has no plan {name} on record.")
        return "plan.html", {**shown, "waiting": waiting}
    pause = past.pause(cluster)
    latest = not steps or steps[0].id == record.id
    known = Life(record, waiting, words, enforcer, paused=pause.sentence if pause else "", latest=latest)
    return "plan.html", {
        **shown,
        "life": known,
        "newer": bool(name) and not latest and not known.waits and not known.runs,
        "earlier": [Life(each, waiting) for each in steps if each.id != record.id][:_MOST_EARLIER],
        **_schedule(asked, cluster, record.document, record),
    }


@viewed("/plan/{name}/now", query=("plan",), repeated=("without",), bound="plans")
def plan_now(asked: Asked) -> Shown:
    """What would be planned now, perhaps with VMs left alone, compared with the plan that was looked at."""
    cluster, known, ids = asked.cluster, asked.snapshot.vm_by_id, asked.words("without")
    if len(ids) > _MOST_SKIPPED:
        raise Refusal(400, f"without: {_MOST_SKIPPED} VMs at most")
    if unknown := [vm for vm in ids if vm not in known or known[vm].cluster != cluster.id]:
        raise Refusal(404, f"Cluster {cluster.name} has no VM {unknown[0]}.")
    vms, former = [known[vm] for vm in ids], _former(asked, cluster)
    asked.check_engine()
    staying = dict.fromkeys(ids, "it is to be left where it is")
    question = "planned", cluster.id, frozenset(ids)
    made = asked.questions.once(question, lambda: asked.site.made.plan(cluster, staying))
    again = [*([("plan", former.id)] if former else ()), *(("without", vm) for vm in ids)]
    shown: dict[str, Any] = {"vms": vms, "again": urlencode(again), "former": former}
    if former is not None:
        steps = list(enumerate(former.steps, 1))
        left = [number for number, step in steps if any(vm["id"] in staying for vm in step["vms"])]
        were, are = (
            [([(vm["id"], vm["from"]["id"]) for vm in step["vms"]], step["to"]["id"]) for step in of]
            for of in (former.steps, made.document["steps"])
        )
        shown |= {
            "skipped": [steps[number - 1] for number in left],
            "depending": [steps[number - 1] for number in waiting_on([step for _, step in steps], left)],
            "gone": [number for number, move in enumerate(were, 1) if move not in are],
            "new": [number for number, move in enumerate(are, 1) if move not in were],
        }
    return _made(asked, cluster, "New plan", made.document, **shown)


@viewed("/plan/{name}/undo", query=("plan",), bound="plans")
def undo(asked: Asked) -> Shown:
    cluster = asked.cluster
    former = _former(asked, cluster)
    if former is None:
        raise Refusal(400, "This address names no plan.", back=f"/plan/{cluster.id}")
    asked.check_engine()
    made = asked.site.made.undo(former)
    return _made(asked, cluster, "Undo", made.document, former=former, kept=made.kept)


@viewed("/vm/{name}/room", bound="plans")
def room(asked: Asked) -> Shown:
    vm = asked.named("VM", asked.snapshot.vms)
    if vm.host is not None:
        raise Refusal(409, f"VM {vm.name} runs already.")
    asked.check_engine()
    answer = asked.questions.once(("room", vm.id), lambda: asked.site.made.room(asked.snapshot, vm))
    document = msgspec.to_builtins(answer.plan)
    return _made(asked, asked.snapshot.cluster_by_id[vm.cluster], "Make room", document, vm=vm, room=answer)


def _made(asked: Asked, cluster: Cluster, kind: str, document: Document, **shown: Any) -> Shown:
    """A plan that is not carried out: nothing has come of a step yet."""
    came = [(number, step, None) for number, step in enumerate(document["steps"], 1)]
    frame = {"cluster": cluster, "kind": kind, "document": document, "came": came}
    schedule = _schedule(asked, cluster, document, compared="room" not in shown)
    return "plan_now.html", {**frame, **schedule, **shown}


def _former(asked: Asked, cluster: Cluster) -> PlanRecord | None:
    """The plan that the address names; it must be of this cluster."""
    word = asked.word("plan")
    record = asked.site.past.plan_named(word) if word else None
    if word and (record is None or record.cluster != cluster.id):
        raise Refusal(404, f"Cluster {cluster.name} has no plan {word} on record.")
    return record


def _schedule(
    asked: Asked,
    cluster: Cluster,
    document: Document,
    record: PlanRecord | None = None,
    *,
    compared: bool = True,
) -> dict[str, Any]:
    """When its steps run, and, unless some run now, where it leads from here or why it does not fit here."""
    steps, migrations = document.get("steps", ()), record.migrations if record else ()
    done = frozenset(one.step for one in migrations if one.state is IntentState.DONE and one.step)
    ahead = [step for number, step in enumerate(steps, 1) if number not in done]
    bars = {one.number: one for one in timed(steps[:_MOST_DRAWN])}
    end: MapDocument | str = ""
    if compared and ahead and not (record and runs(record)):
        end = asked.questions.map_after(cluster, document, done)
    if isinstance(end, str):
        return {"bars": bars, "sides": None, "misfit": end}
    return {"bars": bars, "sides": _sides(asked.questions.map(cluster), end, ahead), "misfit": ""}


def _sides(before: MapDocument, after: MapDocument, steps: Collection[Document]) -> dict[str, Any]:
    """Hosts that a plan changes, each with its VMs before and after; those with most migrations first."""
    places = {host.id: at for at, host in enumerate(before.hosts)}
    counts = Counter(
        host for step in steps for host in (*(vm["from"]["id"] for vm in step["vms"]), step["to"]["id"])
    )
    chosen = sorted(counts.keys() & places.keys(), key=lambda host: (-counts[host], places[host]))
    hosts = [
        [(drawn.hosts[at], {vm.id: vm for vm in drawn.vms if vm.host == at}) for drawn in (before, after)]
        for at in (places[host] for host in chosen[:_MOST_HOSTS])
    ]
    return {
        "hosts": hosts,
        # How many hosts of the plan are not shown, and how many of the cluster stay as they are.
        "left_out": len(counts) - len(hosts),
        "staying": len(before.hosts) - len(counts),
        "wrong": [sum(bool(vm.wrong) for vm in drawn.vms) for drawn in (before, after)],
    }


# -- What is decided on plans, and on migrations at all.
_HOURS = {"1": 3600.0, "4": 4 * 3600.0, "24": 24 * 3600.0, "": None}


@acted("/plan/{name}/approve", "/plan/{name}/refuse")
def decide(asked: Asked) -> Act:
    """Approve or refuse the plan that was looked at, and none that has come meanwhile."""
    cluster, plan, act = asked.cluster, asked.form.get("plan", ""), asked.request.url.path.rsplit("/")[-1]

    def carry_out(who: str) -> None:
        with opened(ApprovalStore, asked.config) as store:
            mine = any((one.cluster, one.plan) == (cluster.id, plan) for one in store.waiting())
            if mine and act == "approve" and store.approve(plan, set_by=who):
                return
            if mine and act == "refuse" and store.refuse(plan, set_by=who, reason=asked.reason):
                return
            waiting = next((one.plan for one in store.waiting() if one.cluster == cluster.id), None)
            raise Stale(asked.site.past.changed(plan, waiting))

    return Act(act, (cluster,), carry_out, f"/plan/{cluster.id}", plan=plan)


@acted("/plan/{name}/apply")
def apply(asked: Asked) -> Act:
    """Have a plan carried out that the page has made and this person has looked at, if it still fits."""
    cluster, plan = asked.cluster, asked.form.get("plan", "")
    made = asked.site.made.known(plan)
    if made is not None and made.document["cluster"]["id"] != cluster.id:
        raise Refusal(404, f"Cluster {cluster.name} has no such plan.")

    def carry_out(who: str) -> None:
        if made is None:
            raise Stale("it was made too long ago, or before the page was restarted: have it made again")
        order_looked_at(asked.config, made.document, set_by=who, undoes=made.undoes)

    act = "undo" if made is not None and made.undoes else "apply"
    return Act(act, (cluster,), carry_out, f"/plan/{cluster.id}", plan=plan)


@acted("/cluster/{name}/pause")
def pause(asked: Asked) -> Act:
    cluster, hours = asked.cluster, asked.form.get("hours", "")
    if hours not in _HOURS:
        raise Refusal(400, "This is not one of the times that can be chosen.")

    def carry_out(who: str) -> None:
        words = {"cluster_name": cluster.name, "reason": asked.reason, "set_by": who}
        with opened(PauseStore, asked.config) as store:
            store.pause(cluster.id, seconds=_HOURS[hours], over=False, **words)

    return Act("pause", (cluster,), carry_out, f"/cluster/{cluster.id}")


@acted("/cluster/{name}/resume")
def resume(asked: Asked) -> Act:
    """Let the enforcer begin migrations in a cluster again, or in all where all were paused together."""
    cluster, of_all = asked.cluster, "all" in asked.form

    def carry_out(who: str) -> None:
        where = {"cluster": ALL_CLUSTERS} if of_all else {"cluster": cluster.id, "cluster_name": cluster.name}
        with opened(PauseStore, asked.config) as store:
            store.resume(**where, set_by=who, set_at=asked.form.get("was", ""))

    clusters = (cluster, *asked.snapshot.clusters) if of_all else (cluster,)
    return Act("resume", clusters, carry_out, f"/cluster/{cluster.id}", on="all clusters" if of_all else "")


async def examine(request: Request) -> Response:
    """Have the doctor look again; that costs the engine some requests, and changes nothing."""
    asked = await asked_by(request)
    await asked.site.bounds.plans.run(asked.session, asked.site.memory.examine, asked.config)
    return RedirectResponse(f"{asked.site.root}/health", 303)
