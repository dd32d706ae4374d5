"""Log-in by name and password or by the portal's token, and log-out."""

from __future__ import annotations

import math
from urllib.parse import parse_qsl, quote

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from ovirt_placement.engine.connection.failures import EngineAway
from ovirt_placement.engine.connection.user_tokens import Refused, sendable
from ovirt_placement.engine.reading.rights import Rights, read_rights
from ovirt_placement_web import audit
from ovirt_placement_web.site import Refusal, Site, check_query, is_framed, site_of
from ovirt_service.errors import UserError

#: The same whatever is wrong: nobody learns which names there are.
_WRONG = "The engine does not take this name and password."
_NO_ADMIN = "This page is for people with an admin role in the engine, as ReadOnlyAdmin."
_AWAY = "The engine does not answer, so nobody can log in now."
_LONGEST = 1024


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
    if site.session(request) is not None:
        return RedirectResponse(goal, 303)
    return site.page(request, "log_in.html", onward=goal, name="", wrong="")


async def log_in(request: Request) -> Response:
    """A session for a name with its password."""
    check_query(request, [])
    site, form = site_of(request), await form_of(request)
    name, password = form.get("name", "").strip(), form.get("password", "")
    goal, address = onward(site, form.get("next", "")), address_of(request)
    if not name or not password or len(name) > _LONGEST or len(password) > _LONGEST:
        return _again(site, request, goal, name[:_LONGEST], 400, "Name and password are needed.")
    if (wait := site.throttle.begin(name, address)) > 0:
        _note(name, address, "refused: too many failures")
        text = f"Too many failed log-ins. Try again in {math.ceil(wait / 60)} min."
        answer = _again(site, request, goal, name, 429, text)
        answer.headers["Retry-After"] = str(math.ceil(wait))
        return answer
    try:
        token = await run_in_threadpool(site.tokens.log_in, name, password)
        rights = await run_in_threadpool(read_rights, site.tokens, token)
    except EngineAway as error:
        _note(name, address, f"failed: {error}")
        return _again(site, request, goal, name, 503, _AWAY)
    except Refused:
        site.throttle.failed(name, address)
        _note(name, address, "refused by the engine")
        return _again(site, request, goal, name, 401, _WRONG)
    finally:
        site.throttle.end(name, address)
    if not rights.administrator:
        await run_in_threadpool(_forget, site, token)
        _note(name, address, "refused: no admin role")
        return _again(site, request, goal, name, 403, _NO_ADMIN)
    return _begun(site, request, rights, token, goal)


async def log_in_by_token(request: Request) -> Response:
    """A session for the token that the engine's portal has given; it comes in the body of the request."""
    check_query(request, [])
    site, form = site_of(request), await form_of(request)
    token, address = form.get("token", ""), address_of(request)
    if (wait := site.throttle.begin("", address)) > 0:
        raise Refusal(429, "Too many failed log-ins.", {"Retry-After": str(math.ceil(wait))})
    try:
        if not sendable(token):
            raise Refused("no token")
        rights = await run_in_threadpool(read_rights, site.tokens, token)
    except EngineAway as error:
        _note("the portal's user", address, f"failed: {error}")
        raise Refusal(503, _AWAY) from None
    except Refused:
        site.throttle.failed("", address)
        _note("the portal's user", address, "refused by the engine")
        raise Refusal(401, "The engine does not take this token.") from None
    finally:
        site.throttle.end("", address)
    if not rights.administrator:
        _note(rights.user_name, address, "refused: no admin role")
        raise Refusal(403, _NO_ADMIN)
    return _begun(site, request, rights, token, onward(site, form.get("next", "")))


async def log_out(request: Request) -> Response:
    """End the session; the cookie of who copies it is worth nothing from now on."""
    check_query(request, [])
    site, form = site_of(request), await form_of(request)
    session = site.session(request)
    if session is not None:
        if not session.admits(form.get("csrf", "")):
            raise Refusal(403, "This form is not of this session.")
        site.sessions.end(session)
        await run_in_threadpool(_forget, site, session.token)
        _note(session.rights.user_name, address_of(request), "done", "log-out")
    answer = RedirectResponse(f"{site.root}/log-in", 303)
    answer.delete_cookie(site.cookie, path=site.root, secure=True, httponly=True, samesite="strict")
    return answer


def address_of(request: Request) -> str:
    """Where the request comes from; by a header only behind a trusted proxy."""
    return request.client.host if request.client else ""


def to_log_in(request: Request, site: Site) -> Response:
    """The way to the form, and back; in the engine's portal, to where its token is asked for."""
    here = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    place = "portal" if is_framed(request) else "log-in"
    return RedirectResponse(f"{site.root}/{place}?next={quote(here)}", 303)


def onward(site: Site, wanted: str) -> str:
    """Where to after the log-in: a path of the page, and nothing else."""
    own = wanted.startswith(f"{site.root}/") and "//" not in wanted and "\\" not in wanted
    return wanted if own and wanted.isprintable() and wanted.isascii() else f"{site.root}/"


def _begun(site: Site, request: Request, rights: Rights, token: str, goal: str) -> Response:
    former = site.session(request)
    if former is not None:
        site.sessions.end(former)
    cookie, _ = site.sessions.begin(rights, token)
    _note(rights.user_name, address_of(request), "done")
    answer = RedirectResponse(goal, 303)
    answer.set_cookie(site.cookie, cookie, path=site.root, secure=True, httponly=True, samesite="strict")
    return answer


def _again(site: Site, request: Request, goal: str, name: str, status: int, wrong: str) -> Response:
    return site.page(request, "log_in.html", status=status, onward=goal, name=name, wrong=wrong)


def _forget(site: Site, token: str) -> None:
    """Have the engine forget a token, if it can be reached."""
    try:
        site.tokens.log_out(token)
    except UserError:
        return  # the engine ends an idle session by itself


def _note(who: str, address: str, outcome: str, act: str = "log-in") -> None:
    audit.note(audit.Act(who=who, address=address, act=act, outcome=outcome))
