"""Plans are approved of, refused or carried out; migrations are paused and resumed; all is examined."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from ovirt_enforcer.orders import Misfits, order_looked_at
from ovirt_placement.store.approvals import ApprovalStore
from ovirt_placement.store.opening import opened
from ovirt_placement.store.pauses import ALL_CLUSTERS, PauseStore
from ovirt_placement_web.acting import Asked, Stale, asked_by, carried_out, cluster_of
from ovirt_placement_web.bounds import Refusal

#: How long a pause lasts, in seconds.
_HOURS = {"1": 3600.0, "4": 4 * 3600.0, "24": 24 * 3600.0, "": None}
_GONE = "this plan was made too long ago, or before the page was restarted: have it made again"


async def approve(request: Request) -> Response:
    """Let the enforcer carry out the plan that was looked at, and no other."""
    asked = await asked_by(request)
    cluster = cluster_of(request, asked)
    plan = asked.form.get("plan", "")

    def carry_out(who: str) -> None:
        with opened(ApprovalStore, asked.site.config) as store:
            # Where another one has come meanwhile, this one is not approved of either: it waits no more.
            if not _waits(store, cluster.id, plan) or store.approve(plan, set_by=who) is None:
                raise _stale(asked, store, cluster.id, plan)

    return await carried_out(asked, cluster, "approve", carry_out, plan=plan)


async def refuse(request: Request) -> Response:
    """Have the plan that was looked at wait no more, for as long as an approval would last."""
    asked = await asked_by(request)
    cluster = cluster_of(request, asked)
    plan = asked.form.get("plan", "")

    def carry_out(who: str) -> None:
        with opened(ApprovalStore, asked.site.config) as store:
            refused = _waits(store, cluster.id, plan) and store.refuse(plan, set_by=who, reason=asked.reason)
            if not refused:
                raise _stale(asked, store, cluster.id, plan)

    return await carried_out(asked, cluster, "refuse", carry_out, plan=plan)


async def apply(request: Request) -> Response:
    """Have a plan carried out that the page has made and this person has looked at, if it still fits."""
    asked = await asked_by(request)
    cluster = cluster_of(request, asked)
    plan = asked.form.get("plan", "")
    made = asked.site.made.known(plan)
    if made is not None and made.document["cluster"]["id"] != cluster.id:
        raise Refusal(404, f"Cluster {cluster.name} has no such plan.")

    def carry_out(who: str) -> None:
        if made is None:
            raise Stale(_GONE)
        try:
            order_looked_at(asked.site.config, made.document, set_by=who, undoes=made.undoes)
        except Misfits as error:
            raise Stale(str(error)) from None

    act = "undo" if made is not None and made.undoes else "apply"
    return await carried_out(asked, cluster, act, carry_out, plan=plan)


def _waits(store: ApprovalStore, cluster: str, plan: str) -> bool:
    return any(one.cluster == cluster and one.plan == plan for one in store.waiting())


def _stale(asked: Asked, store: ApprovalStore, cluster: str, plan: str) -> Stale:
    """With what has become of the plan since it was looked at."""
    waiting = next((one for one in store.waiting() if one.cluster == cluster), None)
    present = None if waiting is None else waiting.plan
    return Stale(asked.site.past.changed(plan, present), back=f"/plan/{cluster}")


async def pause(request: Request) -> Response:
    """Let the enforcer begin no migration in a cluster."""
    asked = await asked_by(request)
    cluster = cluster_of(request, asked)
    hours = asked.form.get("hours", "")
    if hours not in _HOURS:
        raise Refusal(400, "This is not one of the times that can be chosen.")

    def carry_out(who: str) -> None:
        with opened(PauseStore, asked.site.config) as store:
            store.pause(
                cluster.id, cluster_name=cluster.name, reason=asked.reason, set_by=who, seconds=_HOURS[hours]
            )

    return await carried_out(asked, cluster, "pause", carry_out)


async def resume(request: Request) -> Response:
    """Let the enforcer begin migrations in a cluster again, or in all where all were paused together."""
    asked = await asked_by(request)
    cluster = cluster_of(request, asked)
    of_all = "all" in asked.form
    others = asked.site.keeper.view.snapshot.clusters if of_all else ()

    def carry_out(who: str) -> None:
        with opened(PauseStore, asked.site.config) as store:
            if of_all:
                store.resume(ALL_CLUSTERS, set_by=who)
            else:
                store.resume(cluster.id, cluster_name=cluster.name, set_by=who)

    on = "all clusters" if of_all else ""
    return await carried_out(asked, cluster, "resume", carry_out, on=on, also=others)


async def examine(request: Request) -> Response:
    """Have the doctor look again; that costs the engine some requests, and changes nothing."""
    asked = await asked_by(request)
    await asked.site.bounds.plans.run(asked.session, asked.site.questions.examine)
    return RedirectResponse(f"{asked.site.root}/health", 303)
