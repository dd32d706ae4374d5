"""What stands between an address and a view or an act: who asks, and what the address and the form mean.

A form that changes something is shown with a preview first, and does it by another button; see `Act`.
Whether a person may is asked of the engine each time, and stands in the audit log.
"""

import hashlib
import uuid
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial, wraps
from itertools import product
from typing import Any, NamedTuple, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from ovirt_enforcer.orders import Misfits
from ovirt_placement.answers.document import find
from ovirt_placement.answers.plans.what_if import WhatIfDocument
from ovirt_placement.config import Config
from ovirt_placement.engine.connection.failures import EngineAway, EngineFault
from ovirt_placement.engine.users import Refused, read_rights
from ovirt_placement.model import Cluster, Snapshot
from ovirt_placement.store.enforcer.maintenance import Overtaken
from ovirt_placement.store.orders import Paused
from ovirt_placement_web.bounds import Bound, Refusal, sentence, unfound
from ovirt_placement_web.log_in import form_of, note, to_log_in
from ovirt_placement_web.sessions import Session
from ovirt_placement_web.site import NO_ADMIN, Site, check_query, number, site_of
from ovirt_placement_web.state.questions import Questions
from ovirt_placement_web.state.sources import View
from ovirt_service.errors import OutcomeUnknown, UserError
from ovirt_service.text import unbroken

_PAGE_ROWS = 50

Item = TypeVar("Item")
#: What a view shows: by the name of its template.
Shown = tuple[str, dict[str, Any]]
Endpoint = Callable[[Request], Awaitable[Response]]

#: All addresses of views and acts, below the page's root.
ROUTES: list[Route] = []


class Asked(NamedTuple):
    """What a person asks of the page, and what is known at that moment."""

    request: Request
    site: Site
    session: Session
    view: View
    form: dict[str, str] = {}

    @property
    def config(self) -> Config:
        return self.site.config

    @property
    def snapshot(self) -> Snapshot:
        return self.view.snapshot

    @property
    def questions(self) -> Questions:
        return self.site.questions(self.view)

    @property
    def cluster(self) -> Cluster:
        return self.named("cluster", self.snapshot.clusters)

    @property
    def cluster_if_any(self) -> Cluster | None:
        """The one whose list is asked for; None where it is the list of all."""
        return self.cluster if "name" in self.request.path_params else None

    @property
    def reason(self) -> str:
        return unbroken(self.form.get("reason", "").strip())[:_LONGEST_REASON]

    @property
    def removes(self) -> bool:
        return "gone" in self.form or self.form.get("do") == "remove"

    def word(self, key: str, otherwise: str = "") -> str:
        return self.request.query_params.get(key, otherwise)

    def words(self, key: str) -> list[str]:
        """All that stands in the query for a key that may be repeated, each once."""
        return list(dict.fromkeys(self.request.query_params.getlist(key)))

    def named(self, kind: str, items: Iterable[Item]) -> Item:
        """What the address names by id or name; raises `Refusal` if there is none."""
        try:
            return find(self.request.path_params["name"], kind, items)  # type: ignore[type-var]
        except UserError as error:
            raise self.absent(unfound(error)) from None

    def absent(self, text: str) -> Refusal:
        """The answer about what is not there; as long as nothing is known, it may be."""
        return Refusal(404, text) if self.view.known else Refusal(503, "Nothing is known of the engine yet.")

    @property
    def fields(self) -> dict[str, str]:
        """What stands in fields of the form; nothing in those that a browser does not send."""
        found = {name: text.replace("\r\n", "\n").strip() for name, text in self.form.items()}
        return defaultdict(str, found)

    def check_engine(self) -> None:
        """Raise `Refusal` while the engine is away: a plan of old is worth nothing."""
        if self.view.error is not None:
            raise Refusal(503, f"The engine does not answer, so no plan can be made: {self.view.error}.")


def viewed(
    *paths: str,
    query: Sequence[str] = (),
    repeated: Sequence[str] = (),
    bound: str = "views",
    where: str = "",
) -> Callable[[Callable[[Asked], Shown | str]], Endpoint]:
    """A view for people who are logged in, which takes these keys of the query, once or `repeated`.

    It may answer with the address below the root where it goes on. `bound` names the kind of work of `Bounds`
    that it is; it is that only `where` the query has such a key.
    """

    def wrap(ask: Callable[[Asked], Shown | str]) -> Endpoint:
        @wraps(ask)
        async def endpoint(request: Request) -> Response:
            check_query(request, (*query, *repeated), repeated)
            site = site_of(request)
            # What the page fetches by itself is no sign of a person.
            session = site.session(request, use="live-update" not in request.headers)
            if session is None:
                return to_log_in(request, site)

            def render() -> Response:
                asked = Asked(request, site, session, site.live.view)
                found = ask(asked)
                if isinstance(found, str):
                    return RedirectResponse(f"{site.root}{found}", 303)
                template, shown = found
                return site.page(request, template, view=asked.view, questions=asked.questions, **shown)

            is_so = not where or where in request.query_params
            kind: Bound = getattr(site.bounds, bound if is_so else "views")
            return await kind.run(session, render)

        ROUTES.extend(Route(path, endpoint) for path in paths)
        return endpoint

    return wrap


def paged(asked: Asked, items: Sequence[Any]) -> dict[str, Any]:
    """Those of a page of a long list, the number of the page, and that of the last."""
    last = max(1, -(-len(items) // _PAGE_ROWS))
    page = number(asked.request, "page", last)
    return {"items": items[(page - 1) * _PAGE_ROWS : page * _PAGE_ROWS], "number": page, "last": last}


# -- Acts.
#: Who may migrate the VMs of a cluster may pause their migrations, let them go on, and decide on a plan.
MIGRATE = "migrate_vm"
_LONGEST_REASON = 500


class Stale(UserError):
    """What was decided on is not what there is: the text says what has changed."""


class Preview(NamedTuple):
    foreseen: WhatIfDocument | None
    #: What speaks against it, in sentences: it cannot be made.
    against: Sequence[str] = ()
    warnings: Sequence[str] = ()
    #: What it changes, line by line, where the form itself does not say it.
    changes: Sequence[str] = ()
    #: What there is now, for the act to compare, where the form did not have it before.
    was: str = ""


class Act(NamedTuple):
    """A change as asked for. `carry_out` does it in the name of who is given."""

    #: For the audit log.
    name: str
    #: On each of these it takes the permits.
    clusters: Sequence[Cluster]
    carry_out: Callable[[str], None]
    back: str
    permits: Sequence[str] = (MIGRATE,)
    #: What it is done to, where that is not the cluster.
    on: str = ""
    plan: str = ""
    #: Whether it plans first, which takes long: other acts wait for none that does.
    plans: bool = False
    #: Where it is previewed first, and done by the button `do`: the form that is shown with the preview.
    form: Shown | None = None
    foresee: Callable[[], Preview] | None = None


def acted(*paths: str) -> Callable[[Callable[[Asked], Act]], Endpoint]:
    """Addresses whose form is an act, or a change that is previewed first."""

    def wrap(ask: Callable[[Asked], Act]) -> Endpoint:
        @wraps(ask)
        async def endpoint(request: Request) -> Response:
            try:
                asked = await asked_by(request)
                act = ask(asked)
            except Refusal as refusal:
                site = site_of(request)
                if session := site.sessions.find(site.cookie_of(request), use=False):
                    act_at = request.url.path.removeprefix(site.root)[:_LONGEST_REASON]
                    note(request, session.rights.user_name, act_at, f"refused: {refusal.text}")
                raise
            if act.form is None or act.foresee is None or "do" in asked.form:
                return await _carry_out(asked, act)
            preview = await asked.site.bounds.plans.run(asked.session, act.foresee)
            template, shown = act.form
            return asked.site.page(request, template, view=asked.view, **{**shown, "preview": preview})

        ROUTES.extend(Route(path, endpoint, methods=["POST"]) for path in paths)
        return endpoint

    return wrap


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
    return Asked(request, site, session, site.live.view, form)


async def _carry_out(asked: Asked, act: Act) -> Response:
    """Ask the engine whether this person may still do it, do it, and note what came of it."""
    session, first = asked.session, act.clusters[0]
    on, plan = act.on or f"cluster {first.name} ({first.id})", act.plan[:_LONGEST_REASON]
    who, number = session.rights.user_name, f"placement-{uuid.uuid4()}"
    noted = partial(note, asked.request, who, act.name, on=on, plan=plan, correlation_id=number)
    try:
        await _check_permits(asked, act)
        bound = asked.site.bounds.plans if act.plans else asked.site.bounds.acts
        await bound.run(session, act.carry_out, who)
    except Refusal as refusal:
        noted(f"refused: {refusal.text}")
        raise
    except (Stale, Misfits, Overtaken, Paused) as stale:
        noted(f"refused: {stale}")
        raise Refusal(409, sentence(f"Nothing was changed: {stale}"), back=act.back) from None
    except EngineFault as fault:
        noted(f"refused by the engine: {fault}")
        await asked.site.read_rights_again(session)
        raise Refusal(409, sentence(f"The engine refuses it: {fault}")) from None
    except OutcomeUnknown as error:
        noted(f"not known: {error}")
        raise Refusal(503, sentence(f"It is not known whether that was done: {error}")) from None
    except UserError as error:
        noted(f"failed: {error}")
        raise Refusal(503, sentence(f"Nothing was changed: {error}")) from None
    except BaseException as error:  # it may have been done, or go on
        noted(f"not known: {error!r}")
        raise
    noted("done")
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


def digest(what: Any) -> str:
    """Another text once anything of it has changed."""
    return hashlib.sha256(msgspec.json.encode(what)).hexdigest()[:16]
