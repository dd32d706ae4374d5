"""The questions of `/api/v1`, and the documents that answer them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple, get_type_hints

import msgspec
from starlette.requests import Request

from ovirt_placement.answers import question as questions
from ovirt_placement.answers.doctor.examination import DoctorDocument
from ovirt_placement.answers.document import find
from ovirt_placement.answers.ha_check import HaCheckDocument, all_together
from ovirt_placement.answers.keys.listing import KeysListDocument
from ovirt_placement.answers.status.health import StatusDocument
from ovirt_placement.model import Cluster
from ovirt_placement_web.bounds import Refusal
from ovirt_placement_web.cluster_map import MapDocument
from ovirt_placement_web.keeper import View
from ovirt_placement_web.map_changes import MapChangesDocument
from ovirt_placement_web.site import Site
from ovirt_service.errors import UserError

Ask = Callable[[Site, Request, View], msgspec.Struct]


class Question(NamedTuple):
    """An address of the API."""

    path: str
    summary: str
    answer: type[msgspec.Struct]
    ask: Ask
    #: Keys of the query, each with what it means.
    keys: dict[str, str]
    #: Those without which there is no answer.
    required: tuple[str, ...] = ()
    #: Those that are whole numbers.
    numbers: tuple[str, ...] = ()
    #: Whether it takes seconds of this process's time.
    dear: bool = False


class Problem(msgspec.Struct, frozen=True):
    """Why there is no answer."""

    error: str


def _found(request: Request, wanted: str, items: Any) -> Any:
    try:
        return find(request.path_params["name"], wanted, items)
    except UserError as error:
        raise Refusal(404, str(error)) from None


def cluster_asked(request: Request, view: View) -> Cluster | None:
    """The cluster that the query names; None where it names none."""
    word = request.query_params.get("cluster")
    if word is None:
        return None
    try:
        return find(word, "cluster", view.snapshot.clusters)
    except UserError as error:
        raise Refusal(404, str(error)) from None


def _ha_check(site: Site, request: Request, view: View) -> HaCheckDocument:
    cluster, hosts = cluster_asked(request, view), request.query_params.get("hosts")
    if cluster is None:
        raise Refusal(400, "name a cluster: ?cluster=NAME")
    if hosts is None:
        return site.questions.ha_check(view, cluster)
    try:
        failing = all_together(hosts.split(","), view.snapshot)
    except UserError as error:
        raise Refusal(404, str(error)) from None
    return site.questions.failing(view, cluster, failing)


def _map_changes(site: Site, request: Request, view: View) -> MapChangesDocument:
    since = request.query_params.get("since", "")
    if not re.fullmatch(r"[0-9]{1,16}", since):
        raise Refusal(400, "name a map by its number: ?since=NUMBER")
    cluster = _found(request, "cluster", view.snapshot.clusters)
    return site.questions.map_changes(view, cluster, int(since))


def _doctor(site: Site, request: Request, view: View) -> DoctorDocument:
    if site.questions.examined is None:
        raise Refusal(404, "nothing has been examined yet: ask for it on the page")
    return site.questions.examined[0]


def _words(question: questions.Question) -> dict[str, tuple[str, str]]:
    """By key of the query, the parameter that names something by it, and what it means."""
    return {
        (parameter.option or f"--{name}")[2:]: (name, parameter.help or "")
        for name, (parameter, _, _) in question.parameters.items()
        if parameter.names is not None and not parameter.positional
    }


def _address(question: questions.Question, route: questions.Route) -> Question:
    """An address that a question declares: `{name}` in it is its positional parameter."""
    keys = _words(question)
    subject = next((name for name, (one, _, _) in question.parameters.items() if one.positional), "")

    def ask(site: Site, request: Request, view: View) -> msgspec.Struct:
        words = {name: request.query_params.get(key) for key, (name, _) in keys.items()}
        try:
            if route.names is not None:
                route.names.find(request.path_params["name"], view.snapshot, {})
            words |= {subject: request.path_params.get("name")}
            arguments = question.arguments(words, view.snapshot)
        except UserError as error:
            raise Refusal(404, str(error)) from None
        return site.questions.answer(view, question, words, arguments)

    answer = route.answer or get_type_hints(question.ask)["return"]
    return Question(route.path, route.summary, answer, ask, {key: text for key, (_, text) in keys.items()})


_OWN: tuple[Question, ...] = (
    Question(
        "/status",
        "the health in one word, and what it is made of",
        StatusDocument,
        lambda site, request, view: site.questions.status(view),
        {},
    ),
    Question(
        "/ha-check",
        "whether highly available VMs survive failing hosts",
        HaCheckDocument,
        _ha_check,
        {
            "cluster": "only this cluster, by name or id",
            "hosts": "only the failure of all these together, by name or id, with commas",
        },
        required=("cluster",),
        dear=True,
    ),
    Question(
        "/clusters/{name}/map",
        "hosts, VMs and groups of a cluster as they are drawn",
        MapDocument,
        lambda site, request, view: site.questions.map(
            view, _found(request, "cluster", view.snapshot.clusters)
        ),
        {},
    ),
    Question(
        "/clusters/{name}/map/changes",
        "what has changed on the map of a cluster since one that was asked for a short time ago",
        MapChangesDocument,
        _map_changes,
        {"since": "the number of that map"},
        required=("since",),
        numbers=("since",),
    ),
    Question(
        "/keys",
        "the placement keys that are set",
        KeysListDocument,
        lambda site, request, view: site.questions.keys(view),
        {},
    ),
    Question("/doctor", "what was not right when it was last examined", DoctorDocument, _doctor, {}),
)


def addresses() -> tuple[Question, ...]:
    """What the page alone answers, or remembers for long, and what questions declare."""
    return (*_OWN, *(_address(one, route) for one in questions.questions() for route in one.routes))
