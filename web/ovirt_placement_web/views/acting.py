"""What all acts share: by whose form, whether the engine permits it now, and a line in the audit log.

A form that changes something is shown with a preview first, and does it by another button; see `Edit`.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable, Iterable, Sequence
from functools import partial, wraps
from itertools import product
from typing import Any, NamedTuple

import msgspec
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from ovirt_placement.answers.what_if import WhatIfDocument
from ovirt_placement.config import Config
from ovirt_placement.engine.connection.failures import EngineAway, EngineFault
from ovirt_placement.engine.connection.sso import Refused
from ovirt_placement.engine.reading.rights import read_rights
from ovirt_placement.model import Cluster, Snapshot
from ovirt_placement_web import audit
from ovirt_placement_web.bounds import Refusal
from ovirt_placement_web.log_in import address_of, form_of
from ovirt_placement_web.sessions import Session
from ovirt_placement_web.site import NO_ADMIN, Site, check_query, site_of
from ovirt_placement_web.views.pages import Endpoint, Item, Shown, found
from ovirt_service.errors import OutcomeUnknown, UserError
from ovirt_service.text.legible import unbroken

#: Who may migrate the VMs of a cluster may pause their migrations, let them go on, and decide on a plan.
MIGRATE = "migrate_vm"
_LONGEST_REASON = 500
_LONGEST_WORD = 255


class Stale(Exception):
    """What was decided on is not what there is: the text says what has changed, `back` is where to see it."""

    def __init__(self, text: str, back: str = "/") -> None:
        super().__init__(text)
        self.back = back


class Asked(NamedTuple):
    """A person who asks for an act, by a form of this page."""

    request: Request
    site: Site
    session: Session
    form: dict[str, str]

    @property
    def config(self) -> Config:
        return self.site.config

    @property
    def snapshot(self) -> Snapshot:
        return self.site.keeper.view.snapshot

    @property
    def cluster(self) -> Cluster:
        """The one that the address names."""
        return self.named("cluster", self.snapshot.clusters)

    @property
    def reason(self) -> str:
        """Why, in the person's words."""
        return unbroken(self.form.get("reason", "").strip())[:_LONGEST_REASON]

    @property
    def removes(self) -> bool:
        """Whether what the form is about is to be removed."""
        return "gone" in self.form or self.form.get("do") == "remove"

    def named(self, kind: str, items: Iterable[Item]) -> Item:
        """What the address names; raises `Refusal` if there is none."""
        return found(self.request, kind, items)

    def fields(self, *names: str) -> dict[str, str]:
        """What stands in fields of the form; nothing in those that a browser does not send."""
        return {name: self.form.get(name, "").replace("\r\n", "\n").strip() for name in names}


class Act(NamedTuple):
    """A change as asked for. `carry_out` does it in the name of who is given."""

    #: For the audit log.
    name: str
    #: On each of these it takes the permits.
    clusters: Sequence[Cluster]
    carry_out: Callable[[str], None]
    #: The view that is shown then.
    back: str
    permits: Sequence[str] = (MIGRATE,)
    #: What it is done to, where that is not the cluster.
    on: str = ""
    plan: str = ""
    #: Whether it plans first, which takes long: other acts wait for none that does.
    plans: bool = False


class Preview(NamedTuple):
    """What would come of a change."""

    foreseen: WhatIfDocument | None
    #: What speaks against it, in sentences: it cannot be made.
    against: Sequence[str] = ()
    warnings: Sequence[str] = ()
    #: What it changes, line by line, where the form itself does not say it.
    changes: Sequence[str] = ()
    #: What there is now, for the act to compare, where the form did not have it before.
    was: str = ""


class Edit(NamedTuple):
    """A change that a form describes: a preview comes first, and the button that stands there is the act."""

    act: Act
    #: The form, as it is shown with the preview.
    shown: Shown
    foresee: Callable[[], Preview]


def acted(ask: Callable[[Asked], Act]) -> Endpoint:
    """An address whose form is an act."""

    @wraps(ask)
    async def endpoint(request: Request) -> Response:
        asked = await asked_by(request)
        return await _carry_out(asked, ask(asked))

    return endpoint


def edited(ask: Callable[[Asked], Edit]) -> Endpoint:
    """An address whose form is a change: it is previewed, or made by the button `do`."""

    @wraps(ask)
    async def endpoint(request: Request) -> Response:
        asked = await asked_by(request)
        view, edit = asked.site.keeper.view, ask(asked)
        if "do" in asked.form:
            return await _carry_out(asked, edit.act)
        preview = await asked.site.bounds.plans.run(asked.session, edit.foresee)
        template, shown = edit.shown
        return asked.site.page(request, template, view=view, **{**shown, "preview": preview})

    return endpoint


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
    return Asked(request, site, session, form)


async def _carry_out(asked: Asked, act: Act) -> Response:
    """Ask the engine whether this person may still do it, do it, and note what came of it."""
    session, address, first = asked.session, address_of(asked.request), act.clusters[0]
    note = partial(
        audit.note,
        asked.config.engine.label,
        session.rights.user_name,
        address,
        act.name,
        on=act.on or f"cluster {first.name} ({first.id})",
        plan=act.plan[:_LONGEST_REASON],
        correlation_id=f"placement-{uuid.uuid4()}",
    )
    try:
        await _check_permits(asked, act)
        bounds = asked.site.bounds
        await (bounds.plans if act.plans else bounds.acts).run(
            session, act.carry_out, session.rights.user_name
        )
    except Refusal as refusal:
        note(f"refused: {refusal.text}")
        raise
    except Stale as stale:
        note(f"refused: {stale}")
        raise Refusal(409, f"Nothing was changed: {stale}", back=stale.back) from None
    except EngineFault as fault:
        note(f"refused by the engine: {fault}")
        await asked.site.read_rights_again(session)
        raise Refusal(409, f"The engine refuses it: {fault}.") from None
    except OutcomeUnknown as error:
        note(f"not known: {error}")
        raise Refusal(503, f"It is not known whether that was done: {error}.") from None
    except UserError as error:
        note(f"failed: {error}")
        raise Refusal(503, f"Nothing was changed: {error}.") from None
    except BaseException as error:  # it may have been done, or go on
        note(f"not known: {error!r}")
        raise
    note("done")
    return RedirectResponse(f"{asked.site.root}{act.back}", 303)


async def _check_permits(asked: Asked, act: Act) -> None:
    """Raise `Refusal` unless the engine says now that this person may do it in all clusters."""
    site, session = asked.site, asked.session
    try:
        rights = await site.bounds.acts.run(session, read_rights, site.tokens, session.token)
    except EngineAway:
        text = "The engine does not answer, so it is not known whether you may do that."
        raise Refusal(503, text) from None
    except Refused:
        await site.read_rights_again(session)
        if session.ended:
            raise Refusal(401, "The engine has ended your session.") from None
        raise Refusal(403, NO_ADMIN) from None
    session.change(rights)
    if not rights.administrator:
        raise Refusal(403, NO_ADMIN)
    for cluster, permit in product(act.clusters, act.permits):
        if not rights.may(permit, cluster.id, asked.snapshot):
            raise Refusal(403, f"You have no permit {permit} on cluster {cluster.name}.")


def words_of(text: str) -> tuple[str, ...]:
    """The lines of a field that have a word, each once."""
    return tuple(dict.fromkeys(word for line in text.split("\n") if (word := line.strip())))


def check_length(name: str, text: str) -> None:
    if len(text) > _LONGEST_WORD:
        raise Refusal(400, f"{name}: {_LONGEST_WORD} characters at most.")


def digest(what: Any) -> str:
    """Another text once anything of it has changed."""
    return hashlib.sha256(msgspec.json.encode(what)).hexdigest()[:16]
