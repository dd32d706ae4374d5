"""The questions of `/api/v1`, and the documents that answer them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec
from starlette.requests import Request

from ovirt_placement.answers.conflicts import ConflictsDocument
from ovirt_placement.answers.doctor.examination import DoctorDocument
from ovirt_placement.answers.document import find
from ovirt_placement.answers.groups.listing import GroupsListDocument
from ovirt_placement.answers.ha_check import HaCheckDocument, all_together
from ovirt_placement.answers.keys.compiled import KeysOfHostDocument, KeysOfVmDocument
from ovirt_placement.answers.keys.listing import KeysListDocument
from ovirt_placement.answers.placement import ViolationsDocument, WhereDocument, WhyDocument
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


_CLUSTER = {"cluster": "only this cluster, by name or id"}

QUESTIONS: tuple[Question, ...] = (
    Question(
        "/status",
        "the health in one word, and what it is made of",
        StatusDocument,
        lambda site, request, view: site.questions.status(view),
        {},
    ),
    Question(
        "/violations",
        "the rules that running VMs violate",
        ViolationsDocument,
        lambda site, request, view: site.questions.violations(view, cluster_asked(request, view)),
        _CLUSTER,
    ),
    Question(
        "/conflicts",
        "groups and placement rules that cannot be satisfied together",
        ConflictsDocument,
        lambda site, request, view: site.questions.conflicts(view, cluster_asked(request, view)),
        _CLUSTER,
    ),
    Question(
        "/groups",
        "affinity groups, and how they stand",
        GroupsListDocument,
        lambda site, request, view: site.questions.groups(view, cluster_asked(request, view)),
        _CLUSTER,
    ),
    Question(
        "/ha-check",
        "whether highly available VMs survive failing hosts",
        HaCheckDocument,
        _ha_check,
        {**_CLUSTER, "hosts": "only the failure of all these together, by name or id, with commas"},
        required=("cluster",),
        dear=True,
    ),
    Question(
        "/vms/{name}/why",
        "which hosts may take a VM, and why not the others",
        WhyDocument,
        lambda site, request, view: site.questions.why(view, _found(request, "VM", view.snapshot.vms)),
        {},
    ),
    Question(
        "/vms/{name}/where",
        "the hosts that may take a VM, from best to worst",
        WhereDocument,
        lambda site, request, view: site.questions.where(view, _found(request, "VM", view.snapshot.vms)),
        {},
    ),
    Question(
        "/vms/{name}/keys",
        "the placement keys that have a say about a VM",
        KeysOfVmDocument,
        lambda site, request, view: site.questions.keys_of_vm(view, _found(request, "VM", view.snapshot.vms)),
        {},
    ),
    Question(
        "/hosts/{name}/keys",
        "the placement keys of a host",
        KeysOfHostDocument,
        lambda site, request, view: site.questions.keys_of_host(
            view, _found(request, "host", view.snapshot.hosts)
        ),
        {},
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
