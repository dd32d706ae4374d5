"""`/api/v1`: the documents that `--json` prints, for programs with a token of the engine and for the page.

Its addresses are those that questions of the library and of the page declare; so is its description made.
The page has a stream of events besides.
"""

import asyncio
import inspect
import re
import time
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from typing import Any, get_type_hints

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute
from starlette.routing import Route as Served
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ovirt_placement.answers.question import Parameter, Question, Reads, Route, questions
from ovirt_placement_web import state
from ovirt_placement_web.bounds import Refusal
from ovirt_placement_web.log_in import counted_address, refused_by_engine
from ovirt_placement_web.sessions import Session
from ovirt_placement_web.site import NO_ADMIN, Site, check_query, error_text, site_of
from ovirt_placement_web.state.sources import View
from ovirt_service.errors import UserError

_MOST_DIGITS = 16
_NAME = {"type": "string", "minLength": 1}
_NUMBER = {"type": "integer", "minimum": 0, "maximum": 10**_MOST_DIGITS - 1}
#: Answers from this many bytes on are compressed: a map of 10,000 VMs has a MiB.
_LARGE = 100_000
_REFUSALS = {
    "400": "a parameter is wrong",
    "401": "log in, or send a token of the engine",
    "403": "this needs an admin role in the engine",
    "404": "there is no such object",
    "429": "too many requests of this session, token or address are under way",
    "503": "nothing is known, the engine does not answer, or too much is asked",
}


class Problem(msgspec.Struct, frozen=True):
    """Why there is no answer."""

    error: str


@dataclass(frozen=True)
class Address:
    """An address that a question declares: `{name}` in it is the question's positional parameter."""

    asked: Question
    route: Route

    @cached_property
    def keys(self) -> Mapping[str, tuple[str, Parameter, Any]]:
        """By key of the query, the parameter with its name and its type."""
        wanted = self.route.keys
        return {
            (parameter.option or f"--{name}")[2:]: (name, parameter, hint)
            for name, (parameter, hint, _) in self.asked.parameters.items()
            if not parameter.positional
            and (parameter.names is not None if wanted is None else name in wanted)
        }

    @property
    def answer(self) -> Any:
        return self.route.answer or get_type_hints(self.asked.ask)["return"]

    def ask(self, site: Site, request: Request, view: View) -> msgspec.Struct:
        """What the question answers to this request; raises `Refusal` for what names nothing."""
        asked, route = self.asked, self.route
        subject = next((name for name, (one, _, _) in asked.parameters.items() if one.positional), "")
        words: dict[str, Any] = {subject: request.path_params.get("name"), **route.fixed}
        for key, (name, parameter, hint) in self.keys.items():
            word = request.query_params.get(key)
            if hint is int and not re.fullmatch(rf"[0-9]{{1,{_MOST_DIGITS}}}", word or ""):
                raise Refusal(400, f"give {parameter.help}: ?{key}=NUMBER")
            if word is None and key in route.required:
                raise Refusal(400, f"name a {key}: ?{key}=NAME")
            words[name] = int(word or "") if hint is int else word
        try:
            if route.names is not None:
                route.names.find(request.path_params["name"], view.snapshot, {})
            arguments = asked.arguments(words, view.snapshot)
        except UserError as error:
            raise Refusal(404, str(error)) from None
        try:
            return site.questions(view).answer(asked, words, arguments)
        except UserError as error:
            # Nothing is wrong with the state and the configuration: it is about what is asked.
            if asked.reads in (Reads.STATE, Reads.CONFIGURED):
                raise Refusal(404, str(error)) from None
            raise


def addresses() -> tuple[Address, ...]:
    return tuple(Address(one, route) for one in questions(state) for route in one.routes)


def routes() -> list[BaseRoute]:
    return [
        *(Served(one.route.path, _endpoint(one)) for one in addresses()),
        Served("/openapi.json", _described),
    ]


def _endpoint(address: Address) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        try:
            site = site_of(request)
            check_query(request, address.keys)
            asker = await _authenticated(site, request)
            view = site.live.view
            if not view.known:
                raise Refusal(503, view.error or "nothing is known yet")
            kind = site.bounds.checks if address.route.dear else site.bounds.views
            return await kind.run(asker, lambda: _sent(request, address.ask(site, request, view)))
        except Refusal as refusal:
            return problem(refusal)
        except UserError as error:
            return problem(Refusal(503, str(error)))

    return endpoint


async def _authenticated(site: Site, request: Request) -> Hashable:
    """Who asks: a person with a session, or a program with a token of an administrator; else `Refusal`."""
    session = site.session(request, use="live-update" not in request.headers)
    if session is not None:
        return session
    kind, _, token = request.headers.get("authorization", "").partition(" ")
    token = token.strip()
    if kind.lower() != "bearer" or not token:
        raise Refusal(401, _REFUSALS["401"])
    away = "the engine does not answer, so the token cannot be checked"
    with refused_by_engine(away, "the engine does not take this token"):
        rights = await site.bearers.rights(token, counted_address(request))
    if not rights.administrator:
        raise Refusal(403, NO_ADMIN)
    return token


def problem(refusal: Refusal) -> Response:
    ask_for_token = {"WWW-Authenticate": "Bearer"} if refusal.status == 401 else {}
    return _json(Problem(refusal.text), refusal.status, refusal.headers | ask_for_token)


def _sent(request: Request, answer: msgspec.Struct) -> Response:
    """Compressed where it is large; no answer has a secret that its length could show."""
    sent = _json(answer, headers={"Vary": "Accept-Encoding"})
    if len(sent.body) >= _LARGE and "gzip" in request.headers.get("accept-encoding", ""):
        # Ids are random: the strategy for data with few repetitions makes a map smaller by a twelfth.
        packer = zlib.compressobj(9, zlib.DEFLATED, zlib.MAX_WBITS + 16, zlib.DEF_MEM_LEVEL, zlib.Z_FILTERED)
        sent.body = packer.compress(sent.body) + packer.flush()
        sent.headers.update({"Content-Encoding": "gzip", "Content-Length": str(len(sent.body))})
    return sent


def _json(answer: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(msgspec.json.encode(answer), status, headers, media_type="application/json")


# -- The description of all this, for programs.
def _described(request: Request) -> Response:
    check_query(request, [])
    return _json(description(site_of(request).root))


def description(root: str) -> dict[str, Any]:
    every = addresses()
    types = [*(one.answer for one in every), Problem]
    _, components = msgspec.json.schema_components(types, ref_template="#/components/schemas/{name}")
    for component in components.values():
        if "description" in component:
            component["description"] = inspect.cleandoc(component["description"])
    about = "The documents that commands print with --json."
    bearer = {"engine": {"type": "http", "scheme": "bearer"}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "ovirt-placement", "version": version("ovirt-placement"), "description": about},
        "servers": [{"url": f"{root}/api/v1"}],
        "security": [{"engine": []}],
        "paths": {one.route.path: {"get": _operation(one)} for one in every},
        "components": {"schemas": components, "securitySchemes": bearer},
    }


def _operation(address: Address) -> dict[str, Any]:
    in_path = re.findall(r"\{(\w+)\}", address.route.path)
    parameters = [_parameter(name, "path", "by name or id", _NAME, required=True) for name in in_path]
    for name, (_, parameter, hint) in address.keys.items():
        text, required = parameter.help or "", name in address.route.required
        text = text.removesuffix("; else all") if required else text
        text += ", by name or id, with commas" if parameter.names is not None and parameter.names.many else ""
        schema = _NUMBER if hint is int else _NAME
        parameters.append(_parameter(name, "query", text, schema, required=required))
    summary = address.route.summary or address.asked.summary
    answers = {"200": _content(summary, address.answer)}
    answers |= {code: _content(text, Problem) for code, text in _REFUSALS.items()}
    return {"summary": summary, "parameters": parameters, "responses": answers}


def _parameter(
    name: str, where: str, text: str, schema: Mapping[str, Any], *, required: bool
) -> dict[str, Any]:
    return {"name": name, "in": where, "required": required, "description": text, "schema": schema}


def _content(text: str, answer: type) -> dict[str, Any]:
    schema = {"$ref": f"#/components/schemas/{answer.__name__}"}
    return {"description": text, "content": {"application/json": {"schema": schema}}}


# -- The event stream, one a browser: that there is a newer state, and how old the last one is.
#: Proxies and browsers close what is silent for half a minute.
BEAT_SECONDS = 10.0
#: Who takes nothing in for so long is not there.
_PATIENCE_SECONDS = 20.0
#: No more often, whatever the engine does; what comes after a pause is sent at once.
_LEAST_SECONDS = 0.1


async def events(request: Request) -> ASGIApp:
    """Sent in one of the places that streams have, until its reader goes or takes nothing in."""
    check_query(request, [])
    if request.method != "GET":
        raise Refusal(400, "This address takes a GET.")
    site = site_of(request)
    session = site.session(request, use=False)
    if session is None:
        raise Refusal(401, "Log in first.")
    found = _events(site, session, site.cookie_of(request))
    stream = StreamingResponse(found, 200, {"X-Accel-Buffering": "no"}, "text/event-stream")

    async def placed(scope: Scope, receive: Receive, send: Send) -> None:
        async def patiently(message: Message) -> None:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                await send(message)

        async with site.bounds.streams.place(session):
            with suppress(TimeoutError):
                await stream(scope, receive, patiently)

    return placed


async def _events(site: Site, session: Session, cookie: str | None) -> AsyncIterator[bytes]:
    with site.live.subscribed() as changed, session.wakes(changed):
        while True:
            changed.clear()
            lasts = site.sessions.find(cookie, use=False) is session
            if not lasts or not session.rights.administrator:
                yield _event("end", {"why": NO_ADMIN} if lasts else {})
                return
            sent_at = time.monotonic()
            view = site.live.view
            error = view.error and error_text(view.error)
            age = round(view.age_seconds, 1)
            yield _event("state", {"number": view.number, "age_seconds": age, "error": error})
            with suppress(TimeoutError):
                async with asyncio.timeout(BEAT_SECONDS):
                    await changed.wait()
            await asyncio.sleep(sent_at + _LEAST_SECONDS - time.monotonic())


def _event(name: str, said: dict[str, object]) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (name.encode(), msgspec.json.encode(said))
