"""Log-in by name and password or by the portal's token, log-out, and the audit log of these and of acts."""

from collections.abc import Hashable, Iterator
from contextlib import contextmanager, suppress
from ipaddress import IPv6Address, ip_address
from typing import Any, Final
from urllib.parse import parse_qsl, quote, unquote, urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from ovirt_placement.engine.connection.failures import EngineAway
from ovirt_placement.engine.users import NoRole, Refused, Rights, read_rights
from ovirt_placement_web.bounds import Refusal
from ovirt_placement_web.settings import engine_origin
from ovirt_placement_web.site import NO_ADMIN, Site, check_query, is_framed, site_of
from ovirt_service.errors import UserError
from ovirt_service.http.addresses import is_loopback
from ovirt_service.log import AuditLog

#: The same for each refusal: a stranger does not learn which names there are.
_REFUSED = "The engine does not take this name and password."
_AWAY = "The engine does not answer: log in again when it does."
_LONGEST = 1024
#: An address that is encoded more often is none of the page.
_MOST_DECODED = 3


async def form_of(request: Request) -> dict[str, str]:
    """The fields of a form; raises `Refusal` for what is none."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise Refusal(415, "This address takes a form.")
    try:
        text = (await request.body()).decode()
        return dict(parse_qsl(text, keep_blank_values=True, strict_parsing=bool(text), max_num_fields=20))
    except (UnicodeDecodeError, ValueError):
        raise Refusal(400, "This is no form.") from None


async def show(request: Request) -> Response:
    check_query(request, ["next"])
    site = site_of(request)
    goal = onward(site, request.query_params.get("next", ""))
    if site.knows(request):
        return RedirectResponse(goal, 303)
    return site.page(request, "log_in.html", onward=goal, name="", wrong="")


async def log_in(request: Request) -> Response:
    check_query(request, [])
    site, form = site_of(request), await form_of(request)
    name, password = form.get("name", "").strip(), form.get("password", "")
    goal, counted = onward(site, form.get("next", "")), counted_address(request)

    def logged_in() -> tuple[str, Rights]:
        token = site.tokens.log_in(name, password)
        return token, read_rights(site.tokens, token)

    try:
        if not name or not password or max(len(name), len(password)) > _LONGEST:
            raise Refusal(400, "Name and password are needed.")
        with refused_by_engine(_AWAY, _REFUSED):
            async with site.throttle.turn(name, counted, password) as known:
                kind = site.bounds.rights if known else site.bounds.log_ins
                # Those whom no address distinguishes are distinguished by their names.
                token, rights = await kind.run(counted or name, logged_in)
        if not rights.administrator:
            await _forget(site, token, counted or name)
            raise Refusal(403, NO_ADMIN)
    except Refusal as refusal:
        note(request, name[:_LONGEST], "log-in", f"refused: {refusal.text}")
        shown: dict[str, Any] = {"onward": goal, "name": name[:_LONGEST], "wrong": refusal.text}
        answer = site.page(request, "log_in.html", status=refusal.status, **shown)
        answer.headers.update(refusal.headers)
        return answer
    return _begun(site, request, rights, token, goal)


async def log_in_by_token(request: Request) -> Response:
    """A session for the token that the engine's portal has given; it comes in the body of the request."""
    check_query(request, [])
    site, form = site_of(request), await form_of(request)
    token, who = form.get("token", ""), "the portal's user"
    try:
        with refused_by_engine(_AWAY, "The engine does not take this token."):
            rights = await site.bearers.rights(token, counted_address(request), seconds=0.0)
        who = rights.user_name
        if not rights.administrator:
            raise Refusal(403, NO_ADMIN)
    except Refusal as refusal:
        note(request, who, "log-in", f"refused: {refusal.text}")
        raise
    return _begun(site, request, rights, token, onward(site, form.get("next", "")))


def _begun(site: Site, request: Request, rights: Rights, token: str, goal: str) -> Response:
    if former := site.sessions.find(site.cookie_of(request)):
        site.sessions.end(former)
    cookie, _ = site.sessions.begin(rights, token)
    note(request, rights.user_name, "log-in", "done")
    answer = RedirectResponse(goal, 303)
    answer.set_cookie(site.cookie, cookie, path=site.root, secure=True, httponly=True, samesite="strict")
    return answer


@contextmanager
def refused_by_engine(away: str, refused: str) -> Iterator[None]:
    """What a person or a program reads where the engine is away, or does not take what they came with."""
    try:
        yield
    except EngineAway:
        raise Refusal(503, away) from None
    except NoRole:
        raise Refusal(403, NO_ADMIN) from None
    except Refused:
        raise Refusal(401, refused) from None


async def log_out(request: Request) -> Response:
    """End the session; the cookie of who copies it is worth nothing from now on."""
    check_query(request, [])
    site, form = site_of(request), await form_of(request)
    if session := site.sessions.find(site.cookie_of(request)):
        if not session.admits(form.get("csrf", "")):
            raise Refusal(403, "This form is not of this session.")
        site.sessions.end(session)
        await _forget(site, session.token, session)
        note(request, session.rights.user_name, "log-out", "done")
    answer = RedirectResponse(f"{site.root}/log-in", 303)
    answer.delete_cookie(site.cookie, path=site.root, secure=True, httponly=True, samesite="strict")
    return answer


def counted_address(request: Request) -> str:
    """The address that failed log-ins are counted by; empty where many people come from it.

    A tunnel and a web server are on this machine, or are trusted proxies that do not say for whom they ask.
    Of IPv6 it is the network: who has one address of it has 2^64.
    """
    address = request.client.host if request.client else ""
    if is_loopback(address) or address in site_of(request).settings.trusted_proxies:
        return ""
    with suppress(ValueError):
        found = ip_address(address)
        if isinstance(found, IPv6Address) and found.ipv4_mapped is None:
            return f"{int(found) >> 64:x}/64"
    return address


def to_log_in(request: Request, site: Site) -> Response:
    """The way to the form, and back; in the engine's portal, to where its token is asked for."""
    here = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    place = "portal" if is_framed(request) else "log-in"
    return RedirectResponse(f"{site.root}/{place}?next={quote(here)}", 303)


def onward(site: Site, wanted: str) -> str:
    """Where to after the log-in: a path of the page, and nothing else.

    No browser, and no web server that decodes it once more, may find a way out of the page in it.
    """
    read = wanted.partition("?")[0]
    for _ in range(_MOST_DECODED):
        read = unquote(read)
    way = read.split("/")
    stays = (
        wanted.startswith(f"{site.root}/")
        and wanted.isascii()
        and wanted.isprintable()
        and read.isprintable()
        and read == unquote(read)
        and "\\" not in wanted + read
        and "" not in way[1:-1]
        and not any(part.partition(";")[0] in (".", "..") for part in way)
    )
    return wanted if stays else f"{site.root}/"


def show_portal(request: Request) -> Response:
    """On to a view, once there is a session of the person whom the portal names; else, ask for the token."""
    check_query(request, ["next", "user", "tried"])
    site, query = site_of(request), request.query_params
    goal, user = onward(site, query.get("next", "")), query.get("user", "")
    session = site.session(request)
    if session is not None and user in ("", session.rights.user_id):
        return RedirectResponse(goal, 303)
    again = urlencode({"next": goal, "user": user, "tried": "yes"})
    shown: dict[str, Any] = {"asked_of": engine_origin(site.config.engine.url), "goal": goal}
    shown |= {"again": f"{site.root}/portal?{again}", "tried": "tried" in query}
    return site.page(request, "portal.html", **shown)


async def _forget(site: Site, token: str, asker: Hashable) -> None:
    """Have the engine forget a token, if it can be reached; else it ends an idle session by itself."""
    with suppress(UserError, Refusal):
        await site.bounds.acts.run(asker, site.tokens.log_out, token)


# -- The audit log: one line for each log-in and each act, refused ones included.
AUDIT_LOG: Final = AuditLog("ovirt_placement_web.audit", "[web] audit_log", in_log=True)


def note(request: Request, who: str, act: str, outcome: str, **more: str) -> None:
    """Write who did what, from where, at which engine of several, and what came of it; `more`: to what."""
    address = request.client.host if request.client else ""
    facts = {"engine": site_of(request).config.engine.label, "who": who, "address": address}
    facts |= {"act": act, "outcome": outcome, **more}
    AUDIT_LOG.write({name: fact for name, fact in facts.items() if fact or name in ("who", "address")})
