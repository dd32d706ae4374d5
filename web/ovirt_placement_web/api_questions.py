"""The addresses of `/api/v1`, as questions of the library and of the page declare them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, get_type_hints

import msgspec
from starlette.requests import Request

import ovirt_placement_web
from ovirt_placement.answers.question import Parameter, Question, Reads, Route, questions
from ovirt_placement_web.bounds import Refusal
from ovirt_placement_web.keeper import View
from ovirt_placement_web.site import Site
from ovirt_service.errors import UserError

Ask = Callable[[Site, Request, View], msgspec.Struct]


class Address(NamedTuple):
    """An address of the API."""

    route: Route
    summary: str
    answer: type[msgspec.Struct]
    ask: Ask
    #: Keys of the query, each with the name and the type of its parameter.
    keys: Mapping[str, tuple[str, Parameter, Any]]


class Problem(msgspec.Struct, frozen=True):
    """Why there is no answer."""

    error: str


def _keys(asked: Question, route: Route) -> dict[str, tuple[str, Parameter, Any]]:
    """By key of the query, the parameter with its name and its type."""
    return {
        (parameter.option or f"--{name}")[2:]: (name, parameter, hint)
        for name, (parameter, hint, _) in asked.parameters.items()
        if not parameter.positional
        and (parameter.names is not None if route.keys is None else name in route.keys)
    }


def _address(asked: Question, route: Route) -> Address:
    """An address that a question declares: `{name}` in it is its positional parameter."""
    keys = _keys(asked, route)
    subject = next((name for name, (one, _, _) in asked.parameters.items() if one.positional), "")

    def ask(site: Site, request: Request, view: View) -> msgspec.Struct:
        words: dict[str, Any] = {}
        for key, (name, parameter, hint) in keys.items():
            word = request.query_params.get(key)
            words[name] = _number(key, parameter, word) if hint is int else word
            if word is None and key in route.required:
                raise Refusal(400, f"name a {key}: ?{key}=NAME")
        try:
            if route.names is not None:
                route.names.find(request.path_params["name"], view.snapshot, {})
            words |= {subject: request.path_params.get("name"), **route.fixed}
            arguments = asked.arguments(words, view.snapshot)
        except UserError as error:
            raise Refusal(404, str(error)) from None
        try:
            return site.questions.answer(view, asked, words, arguments)
        except UserError as error:
            if asked.reads in _OF_STATE_ALONE:
                raise Refusal(404, str(error)) from None
            raise

    answer = route.answer or get_type_hints(asked.ask)["return"]
    return Address(route, route.summary or asked.summary, answer, ask, keys)


#: Nothing is wrong with what such a question reads: what it has to say against is about what is asked.
_OF_STATE_ALONE = (Reads.STATE, Reads.DOMAINS, Reads.PAST)


#: Of the numbers that a query has.
_MOST_DIGITS = 16


def _number(key: str, parameter: Parameter, word: str | None) -> int:
    if not re.fullmatch(rf"[0-9]{{1,{_MOST_DIGITS}}}", word or ""):
        raise Refusal(400, f"give {parameter.help}: ?{key}=NUMBER")
    return int(word or "")


def addresses() -> tuple[Address, ...]:
    """All that questions of the library and of the page declare."""
    return tuple(_address(one, route) for one in questions(ovirt_placement_web) for route in one.routes)
