"""The acts of people on a cluster, and an examination."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from ovirt_placement.store.opening import opened
from ovirt_placement.store.pauses import ALL_CLUSTERS, PauseStore
from ovirt_placement_web.acting import asked_by, carried_out, cluster_of
from ovirt_placement_web.bounds import Refusal

_HOURS = {"1": 3600.0, "4": 4 * 3600.0, "24": 24 * 3600.0, "": None}


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
