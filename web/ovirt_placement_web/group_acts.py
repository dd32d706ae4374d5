"""Affinity groups are added, changed and removed: foreseen first, then by the engine in the person's name."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import closing
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from ovirt_placement.answers.groups.change import differences
from ovirt_placement.answers.groups.check import GroupJudgement, judge
from ovirt_placement.answers.preview import changed_groups
from ovirt_placement.answers.what_if import WhatIfDocument
from ovirt_placement.engine.connection.client import EngineAway, EngineConnection
from ovirt_placement.engine.connection.sso import VARIABLE
from ovirt_placement.engine.reading.topology import read_groups
from ovirt_placement.engine.writing.affinity_groups import GroupEdit, add_group, edit_group, remove_group
from ovirt_placement.model import AffinityGroup, Cluster
from ovirt_placement.store.opening import opened
from ovirt_placement.store.user_actions import Act, UserActionKind, UserActionStore
from ovirt_placement_web.acting import Asked, Stale, asked_by, carried_out, cluster_of
from ovirt_placement_web.group_form import LISTS, empty, filled, meant, sent, state_of
from ovirt_placement_web.keeper import View
from ovirt_placement_web.pages import Shown, found, viewed
from ovirt_placement_web.site import Site
from ovirt_service.errors import OutcomeUnknown, UserError

PERMIT = "manipulate_affinity_groups"
_FIELDS = ("name", "priority", "vms_rule", "hosts_rule", *LISTS)
_CHANGED = "somebody has changed this group since you looked at it: look at it again"

_log = logging.getLogger(__name__)


class _Change(NamedTuple):
    """What is to become of a group; `after` is None of one that is to be removed."""

    kind: UserActionKind
    cluster: Cluster
    before: AffinityGroup
    after: AffinityGroup | None

    @property
    def verb(self) -> str:
        return {"group_add": "Add", "group_edit": "Change", "group_remove": "Remove"}[self.kind.value]


@viewed()
def edit_form(site: Site, request: Request, view: View) -> Shown:
    """The form of a group that there is."""
    group = found(request, "affinity group", view.snapshot.affinity_groups)
    change = _Change(UserActionKind.GROUP_EDIT, view.snapshot.cluster_by_id[group.cluster], group, group)
    return "group_form.html", _shown(change, filled(group, view.snapshot))


@viewed()
def add_form(site: Site, request: Request, view: View) -> Shown:
    """The form of a new group of a cluster."""
    cluster = found(request, "cluster", view.snapshot.clusters)
    group = empty(cluster)
    change = _Change(UserActionKind.GROUP_ADD, cluster, group, group)
    return "group_form.html", _shown(change, filled(group, view.snapshot))


async def edit(request: Request) -> Response:
    asked = await asked_by(request)
    group = found(request, "affinity group", asked.site.keeper.view.snapshot.affinity_groups)
    return await _foreseen_or_done(request, asked, UserActionKind.GROUP_EDIT, group)


async def add(request: Request) -> Response:
    asked = await asked_by(request)
    group = empty(cluster_of(request, asked))
    return await _foreseen_or_done(request, asked, UserActionKind.GROUP_ADD, group)


async def remove(request: Request) -> Response:
    asked = await asked_by(request)
    group = found(request, "affinity group", asked.site.keeper.view.snapshot.affinity_groups)
    return await _foreseen_or_done(request, asked, UserActionKind.GROUP_REMOVE, group)


async def _foreseen_or_done(
    request: Request, asked: Asked, kind: UserActionKind, group: AffinityGroup
) -> Response:
    """What would come of it; or, by the button that stands there, the act."""
    view = asked.site.keeper.view
    gone = kind is UserActionKind.GROUP_REMOVE
    was = {"was": asked.form.get("was", "")}
    form = filled(group, view.snapshot) | was if gone else sent(asked.form)
    after = None if gone else meant(form, group, view.snapshot)
    change = _Change(kind, view.snapshot.cluster_by_id[group.cluster], group, after)
    if "do" in asked.form:
        return await _done(asked, change, form)
    judgement, foreseen = await asked.site.bounds.plans.run(
        asked.session, _foreseen, asked.site, view, change
    )
    shown = _shown(change, form) | {"judgement": judgement, "foreseen": foreseen}
    return asked.site.page(request, "group_form.html", view=view, **shown)


def _foreseen(site: Site, view: View, change: _Change) -> tuple[GroupJudgement, WhatIfDocument]:
    judgement = GroupJudgement((), (), ()) if change.after is None else judge(view.snapshot, change.after)
    gone, meant_groups = ((change.before,), ()) if change.after is None else ((), (change.after,))
    groups = changed_groups(view.snapshot, gone, meant_groups, judgement.all)
    return judgement, site.made.foreseen(view.snapshot, groups)


async def _done(asked: Asked, change: _Change, form: Mapping[str, str]) -> Response:
    def carry_out(who: str) -> None:
        with closing(_in_the_name_of(asked)) as connection:
            if change.before.id and form["was"] != _state_now(connection, change.before.id):
                raise Stale(_CHANGED)
            _record_and_ask(asked, who, change, connection)

    act = change.kind.value.replace("_", " ")
    name = change.before.name or form["name"]
    gone = change.after is None or not change.before.id
    back = f"/cluster/{change.cluster.id}" if gone else f"/group/{change.before.id}"
    on = f"affinity group {name} of cluster {change.cluster.name} ({change.cluster.id})"
    return await carried_out(asked, change.cluster, act, carry_out, permits=(PERMIT,), on=on, back=back)


def _state_now(connection: EngineConnection, group_id: str) -> str:
    """What the engine has, which may be newer than what the page knows; empty of a group that is gone."""
    groups, _ = read_groups(connection)
    return next((state_of(one) for one in groups if one.id == group_id), "")


def _record_and_ask(asked: Asked, who: str, change: _Change, connection: EngineConnection) -> None:
    """Have the engine do it in the person's name; begun and ended in the store, as commands do."""
    snapshot = asked.site.keeper.view.snapshot
    details = () if change.after is None else tuple(differences(change.before, change.after, snapshot))
    act = Act(
        kind=change.kind,
        login=who,
        engine_user=who,
        cluster=change.cluster.id,
        cluster_name=change.cluster.name,
        subject=change.before.name or (change.after.name if change.after else ""),
        details=details,
    )
    with opened(UserActionStore, asked.site.config) as store:
        number = store.begin(act)
        try:
            _ask(connection, change)
        except EngineAway as error:
            _end(store, number, str(error))
            if error.request_sent:
                raise OutcomeUnknown(str(error)) from None
            raise
        except BaseException as error:
            _end(store, number, str(error) or type(error).__name__)
            raise
        _end(store, number)


def _end(store: UserActionStore, number: int, error: str | None = None) -> None:
    """What the engine has done is done, whether that is recorded or not."""
    try:
        store.end(number, error)
    except UserError as away:
        _log.warning("it is not recorded how the change of an affinity group ended: %s", away)


def _ask(connection: EngineConnection, change: _Change) -> None:
    before, after = change.before, change.after
    if after is None:
        remove_group(connection, before.cluster, before.id)
        return
    fields: dict[str, Any] = {
        name: getattr(after, name)
        for name in _FIELDS
        if not before.id or getattr(before, name) != getattr(after, name)
    }
    if not before.id:
        add_group(connection, before.cluster, GroupEdit(**fields))
    elif fields:
        edit_group(connection, before.cluster, before.id, GroupEdit(**fields))


def _in_the_name_of(asked: Asked) -> EngineConnection:
    """A connection by the token of the session: the engine decides, and its events name the person."""
    return EngineConnection(asked.site.config.engine, {VARIABLE: asked.session.token})


def _shown(change: _Change, form: Mapping[str, str]) -> dict[str, Any]:
    if change.kind is UserActionKind.GROUP_ADD:
        action = f"/cluster/{change.cluster.id}/new-group"
    else:
        action = f"/group/{change.before.id}/{'remove' if change.after is None else 'edit'}"
    return {
        "cluster": change.cluster,
        "group": change.before,
        "form": form,
        "lists": LISTS,
        "verb": change.verb,
        "action": action,
        "may": PERMIT,
        "judgement": None,
        "foreseen": None,
        "part": "Rules",
        "crumbs": (
            ("Rules", "/rules"),
            *(((change.before.name, f"/group/{change.before.id}"),) if change.before.id else ()),
            ({"Add": "New affinity group", "Change": "Edit", "Remove": "Remove"}[change.verb], ""),
        ),
    }
