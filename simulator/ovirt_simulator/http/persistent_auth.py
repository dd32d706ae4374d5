"""Staying logged in by a cookie, for clients that ask for it with `Prefer: persistent-auth`.

Source: the engine's RestApiSessionMgmtFilter and FiltersHelper. Its `csrf-protection` and `Session-TTL` are
left out: such a session is not protected, and lives as long as any.
"""

from __future__ import annotations

from werkzeug import Request, Response

from ovirt_simulator.http.markup import API
from ovirt_simulator.http.sso import Tokens
from ovirt_simulator.http.users import User

COOKIE = "JSESSIONID"
#: WildFly ends the ids of its sessions with a name of its own: a session is no token.
_NODE = ".engine"


def identity(request: Request, tokens: Tokens) -> tuple[str, User] | None:
    """Say who asks, by the session in the cookie; None when there is none, or none that is known."""
    session = request.cookies.get(COOKIE, "")
    return tokens.user(session.removesuffix(_NODE)) if session.endswith(_NODE) else None


def settle(request: Request, response: Response, tokens: Tokens, user_name: str) -> None:
    """Begin a session if one is asked for; end the one there is if it is not asked for any more."""
    if _preferred(request):
        if identity(request, tokens) is None:
            session = tokens.issue(user_name) + _NODE
            response.set_cookie(COOKIE, session, path=API, httponly=True)
    elif request.authorization is None or request.authorization.type != "bearer":
        tokens.revoke(request.cookies.get(COOKIE, "").removesuffix(_NODE))


def _preferred(request: Request) -> bool:
    preferences = ",".join(request.headers.getlist("Prefer")).split(",")
    return any(each.partition("=")[0].strip().lower() == "persistent-auth" for each in preferences)
