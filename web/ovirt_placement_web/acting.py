"""What all acts share: by whose form, whether the engine permits it now, and a line in the audit log."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from itertools import product
from typing import NamedTuple, TypeVar

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from ovirt_placement.engine.connection.failures import EngineAway, EngineFault
from ovirt_placement.engine.connection.sso import Refused
from ovirt_placement.engine.reading.rights import read_rights
from ovirt_placement.model import Cluster
from ovirt_placement.store.access import StoreAccess
from ovirt_placement_web import audit
from ovirt_placement_web.bounds import Refusal
from ovirt_placement_web.log_in import address_of, form_of
from ovirt_placement_web.pages import found
from ovirt_placement_web.sessions import Session
from ovirt_placement_web.site import NO_ADMIN, Site, check_query, site_of
from ovirt_service.errors import OutcomeUnknown, UserError
from ovirt_service.legible import unbroken

Store = TypeVar("Store", bound=StoreAccess)

#: Who may migrate the VMs of a cluster may pause their migrations, let them go on, and decide on a plan.
PERMIT = "migrate_vm"
_LONGEST_REASON = 500


class Stale(Exception):
    """What was decided on is not what there is: the text says what has changed, `back` is where to see it."""

    def __init__(self, text: str, back: str = "") -> None:
        super().__init__(text)
        self.back = back


class Asked(NamedTuple):
    """A person who asks for an act, by a form of this page."""

    site: Site
    session: Session
    form: dict[str, str]
    address: str

    @property
    def reason(self) -> str:
        """Why, in the person's words."""
        return unbroken(self.form.get("reason", "").strip())[:_LONGEST_REASON]


async def asked_by(request: Request) -> Asked:
    """Who asks; raises `Refusal` unless by a form of their session."""
    check_query(request, [])
    site = site_of(request)
    session = site.session(request)
    if session is None:
        raise Refusal(401, "You are not logged in any more.")
    form = await form_of(request)
    if not session.admits(form.get("csrf", "")):
        raise Refusal(403, "This form is not of this session.")
    return Asked(site, session, form, address_of(request))


def cluster_of(request: Request, asked: Asked) -> Cluster:
    return found(request, "cluster", asked.site.keeper.view.snapshot.clusters)


async def carried_out(
    asked: Asked,
    cluster: Cluster,
    act: str,
    carry_out: Callable[[str], None],
    *,
    plan: str = "",
    permits: Sequence[str] = (PERMIT,),
    on: str = "",
    back: str = "",
    also: Sequence[Cluster] = (),
) -> Response:
    """Ask the engine whether this person may still do it, do it, and note what came of it.

    It takes the permits on the cluster and on those that it concerns `also`. `on` is what it is done to,
    where that is not the cluster; then the page `back` is shown.
    """
    correlation_id = f"placement-{uuid.uuid4()}"

    def note(outcome: str) -> None:
        audit.note(
            audit.Act(
                who=asked.session.rights.user_name,
                address=asked.address,
                act=act,
                on=on or f"cluster {cluster.name} ({cluster.id})",
                plan=plan[:_LONGEST_REASON],
                outcome=outcome,
                correlation_id=correlation_id,
            )
        )

    await _permitted(asked, (cluster, *also), permits, note)
    try:
        await asked.site.bounds.acts.run(asked.session, carry_out, asked.session.rights.user_name)
    except Refusal as refusal:
        note(f"refused: {refusal.text}")
        raise
    except Stale as stale:
        note(f"refused: {stale}")
        raise Refusal(409, f"Nothing was changed: {stale}", back=stale.back or "/") from None
    except EngineFault as fault:
        note(f"refused by the engine: {fault}")
        await asked.site.read_rights_again(asked.session)
        raise Refusal(409, f"The engine refuses it: {fault}.") from None
    except OutcomeUnknown as error:
        note(f"not known: {error}")
        raise Refusal(503, f"It is not known whether that was done: {error}.") from None
    except UserError as error:
        note(f"failed: {error}")
        raise Refusal(503, f"Nothing was changed: {error}.") from None
    note("done")
    view = back or f"/{'plan' if plan else 'cluster'}/{cluster.id}"
    return RedirectResponse(f"{asked.site.root}{view}", 303)


async def _permitted(
    asked: Asked, clusters: Sequence[Cluster], permits: Sequence[str], note: Callable[[str], None]
) -> None:
    """Raise `Refusal` unless the engine says now that this person may do it in all of them."""
    try:
        rights = await asked.site.bounds.acts.run(
            asked.session, read_rights, asked.site.tokens, asked.session.token
        )
    except EngineAway as error:
        note(f"refused: {error}")
        text = "The engine does not answer, so it is not known whether you may do that."
        raise Refusal(503, text) from None
    except Refusal as refusal:
        note(f"refused: {refusal.text}")
        raise
    except Refused:
        await asked.site.read_rights_again(asked.session)
        if not asked.session.ended:
            note("refused: no admin role")
            raise Refusal(403, NO_ADMIN) from None
        note("refused: the engine takes the token no more")
        raise Refusal(401, "The engine has ended your session.") from None
    asked.session.change(rights)
    snapshot = asked.site.keeper.view.snapshot
    for cluster, permit in product(clusters, permits):
        if not rights.administrator:
            note("refused: no admin role")
            raise Refusal(403, NO_ADMIN)
        if not rights.may(permit, cluster.id, snapshot):
            note(f"refused: no {permit} on the cluster")
            raise Refusal(403, f"You have no permit {permit} on cluster {cluster.name}.")
