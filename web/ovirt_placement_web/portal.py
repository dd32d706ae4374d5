"""Lets people of the engine's portal in: its plug-in frames this address, which asks it for the token."""

from __future__ import annotations

from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from ovirt_placement_web.log_in import onward
from ovirt_placement_web.settings import engine_origin
from ovirt_placement_web.site import check_query, site_of


def show(request: Request) -> Response:
    """On to a view, once there is a session of the person whom the portal names; else, ask for the token."""
    check_query(request, ["next", "user", "tried"])
    site, query = site_of(request), request.query_params
    goal, user = onward(site, query.get("next", "")), query.get("user", "")
    session = site.session(request)
    if session is not None and user in ("", session.rights.user_id):
        return RedirectResponse(goal, 303)
    again = urlencode({"next": goal, "user": user, "tried": "yes"})
    return site.page(
        request,
        "portal.html",
        asked_of=engine_origin(site.config.engine.url),
        goal=goal,
        again=f"{site.root}/portal?{again}",
        tried="tried" in query,
    )
