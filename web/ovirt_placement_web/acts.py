"""The acts of people: each is permitted by the engine at that moment, and leaves a line in the audit log."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from contextlib import closing
from typing import NamedTuple

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from ovirt_placement.engine.connection.failures import EngineAway
from ovirt_placement.engine.connection.user_tokens import Refused
from ovirt_placement.engine.reading.rights import Rights, read_rights
from ovirt_placement.model import Cluster
from ovirt_placement.store.pauses import PauseStore
from ovirt_placement_web import audit
from ovirt_placement_web.log_in import address_of, form_of
from ovirt_placement_web.pages import found
from ovirt_placement_web.sessions import Session
from ovirt_placement_web.site import Refusal, Site, check_query, site_of
from ovirt_service.errors import UserError
from ovirt_service.legible import unbroken

#: Who may migrate the VMs of a cluster may pause their migrations, and let them go on.
PERMIT = "migrate_vm"
_LONGEST_REASON = 500
_STORE_SECONDS = 5.0
_HOURS = {"1": 3600.0, "4": 4 * 3600.0, "24": 24 * 3600.0, "": None}


class _Asked(NamedTuple):
    """A person who asks for an act, by a form of this page."""

    site: Site
    session: Session
    form: dict[str, str]
    address: str


async def pause(request: Request) -> Response:
    """Let the enforcer begin no migration in a cluster."""
    asked = await _asked(request)
    cluster = _cluster(request, asked)
    hours = asked.form.get("hours", "")
    if hours not in _HOURS:
        raise Refusal(400, "This is not one of the times that can be chosen.")
    reason = unbroken(asked.form.get("reason", "").strip())[:_LONGEST_REASON]

    def carry_out(store: PauseStore, who: str) -> None:
        store.pause(cluster.id, cluster_name=cluster.name, reason=reason, set_by=who, seconds=_HOURS[hours])

    return await _carried_out(asked, cluster, "pause", carry_out)


async def resume(request: Request) -> Response:
    """Let the enforcer begin migrations in a cluster again."""
    asked = await _asked(request)
    cluster = _cluster(request, asked)

    def carry_out(store: PauseStore, who: str) -> None:
        store.resume(cluster.id, set_by=who)

    return await _carried_out(asked, cluster, "resume", carry_out)


async def examine(request: Request) -> Response:
    """Have the doctor look again; that costs the engine some requests, and changes nothing."""
    asked = await _asked(request)
    await run_in_threadpool(asked.site.questions.examine)
    return RedirectResponse(f"{asked.site.root}/doctor", 303)


async def _asked(request: Request) -> _Asked:
    """Who asks; raises `Refusal` unless by a form of their session."""
    check_query(request, [])
    site = site_of(request)
    session = site.session(request)
    if session is None:
        raise Refusal(401, "You are not logged in any more.")
    form = await form_of(request)
    if not session.admits(form.get("csrf", "")):
        raise Refusal(403, "This form is not of this session.")
    return _Asked(site, session, form, address_of(request))


def _cluster(request: Request, asked: _Asked) -> Cluster:
    return found(request, "cluster", asked.site.keeper.view.snapshot.clusters)


async def _carried_out(
    asked: _Asked, cluster: Cluster, act: str, carry_out: Callable[[PauseStore, str], None]
) -> Response:
    """Ask the engine whether this person may still do it, do it, and note what came of it."""
    correlation_id = f"placement-{uuid.uuid4()}"

    def note(outcome: str) -> None:
        audit.note(
            audit.Act(
                who=asked.session.rights.user_name,
                address=asked.address,
                act=act,
                on=f"cluster {cluster.name} ({cluster.id})",
                outcome=outcome,
                correlation_id=correlation_id,
            )
        )

    try:
        rights = await run_in_threadpool(read_rights, asked.site.tokens, asked.session.token)
    except EngineAway as error:
        note(f"refused: {error}")
        raise Refusal(
            503, "The engine does not answer, so it is not known whether you may do that."
        ) from None
    except Refused:
        asked.site.sessions.end(asked.session)
        note("refused: the engine takes the token no more")
        raise Refusal(401, "The engine has ended your session.") from None
    asked.session.rights = rights
    if not rights.administrator or not rights.may(PERMIT, cluster.id, asked.site.keeper.view.snapshot):
        note(f"refused: no {PERMIT} on the cluster")
        raise Refusal(403, f"You have no permit {PERMIT} on cluster {cluster.name}.")
    try:
        await run_in_threadpool(_in_store, asked, rights, carry_out)
    except UserError as error:
        note(f"failed: {error}")
        raise Refusal(503, f"Nothing was changed: {error}.") from None
    note("done")
    return RedirectResponse(f"{asked.site.root}/cluster/{cluster.id}", 303)


def _in_store(asked: _Asked, rights: Rights, carry_out: Callable[[PauseStore, str], None]) -> None:
    config = asked.site.config
    with closing(
        PauseStore(config.store.url, engine=config.engine.name, patience_seconds=_STORE_SECONDS)
    ) as store:
        carry_out(store, rights.user_name)
