"""Affinity groups: their views, and forms that change them by the engine, in the person's name."""

import logging
from collections.abc import Mapping
from contextlib import closing
from typing import Any, NamedTuple

import msgspec

from ovirt_placement.answers.conflicts import ConflictFound, ContradictionFound, conflicts
from ovirt_placement.answers.group_changes import judge
from ovirt_placement.answers.groups import MEMBERS, differences, find_member, groups_list, table_of
from ovirt_placement.answers.violations import violations
from ovirt_placement.engine.actions import remove_group, save_group
from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.connection.failures import EngineAway
from ovirt_placement.engine.connection.log_ins import VARIABLE
from ovirt_placement.engine.topology import read_groups
from ovirt_placement.forecast.changes import changed_groups
from ovirt_placement.model import AffinityGroup, AffinityRule, Cluster, Snapshot
from ovirt_placement.model.yaml_files import stored_priority, stored_text
from ovirt_placement.store.sql.access import opened
from ovirt_placement.store.user_actions import Act as Recorded
from ovirt_placement.store.user_actions import UserActionKind, UserActionStore
from ovirt_placement_web.bounds import Refusal
from ovirt_placement_web.views.endpoints import (
    Act,
    Asked,
    Edit,
    Preview,
    Shown,
    Stale,
    digest,
    edited,
    viewed,
    words_of,
)
from ovirt_service.errors import OutcomeUnknown, UserError
from ovirt_service.text import escaped

PERMIT = "manipulate_affinity_groups"
#: The member lists with what they are called.
_LISTS = {"vms": "VMs", "vm_labels": "VM labels", "hosts": "Hosts", "host_labels": "Host labels"}
_FIELDS = ("name", "priority", "vms_rule", "hosts_rule", *_LISTS)
_OFF = AffinityRule(enabled=False, positive=False, enforcing=False)
_CHANGED = "somebody has changed this group since you looked at it: look at it again"

_log = logging.getLogger(__name__)


class _Change(NamedTuple):
    """What is to become of a group. One without an id is new; `after` is None of one that goes."""

    cluster: Cluster
    before: AffinityGroup
    after: AffinityGroup | None

    @property
    def kind(self) -> UserActionKind:
        if self.after is None:
            return UserActionKind.GROUP_REMOVE
        return UserActionKind.GROUP_EDIT if self.before.id else UserActionKind.GROUP_ADD


@viewed()
def group(asked: Asked) -> Shown:
    """A group with its members, what violates it, and what it clashes with."""
    one = asked.named("affinity group", asked.snapshot.affinity_groups)
    listed = asked.questions.of_clusters(groups_list, group=one.id).groups[0]
    here = asked.snapshot.cluster_by_id[one.cluster]
    clashes: list[ConflictFound | ContradictionFound] = []
    for of_cluster in asked.questions.of_clusters(conflicts, here).clusters:
        clashes += [*of_cluster.conflicts, *of_cluster.contradictions]
    return "group.html", {
        "crumbs": (("Rules", "/rules"), (one.name, "")),
        "group": listed,
        "was": _state_of(one),
        "clashes": [each for each in clashes if any(other.id == one.id for other in each.groups)],
        "violations": asked.questions.of_clusters(violations, group=one.id).violations,
        "hosts_of": {at.vm.id: at.host for at in listed.running},
    }


@viewed()
def edit_form(asked: Asked) -> Shown:
    """The form of a group that there is."""
    group = asked.named("affinity group", asked.snapshot.affinity_groups)
    cluster = asked.snapshot.cluster_by_id[group.cluster]
    return _shown(_Change(cluster, group, group), _filled(group, asked.snapshot))


@viewed()
def add_form(asked: Asked) -> Shown:
    """The form of a new group of a cluster."""
    cluster = asked.cluster
    group = _empty(cluster)
    return _shown(_Change(cluster, group, group), _filled(group, asked.snapshot))


@edited
def edit(asked: Asked) -> Edit:
    return _edit(asked, asked.named("affinity group", asked.snapshot.affinity_groups))


@edited
def add(asked: Asked) -> Edit:
    return _edit(asked, _empty(asked.cluster))


def _edit(asked: Asked, group: AffinityGroup) -> Edit:
    snapshot, gone = asked.snapshot, asked.removes and group.id != ""
    form = asked.fields(*_FIELDS, "vms_enforcing", "hosts_enforcing", "was")
    if gone:
        form = _filled(group, snapshot) | {"was": form["was"]}
    after = None if gone else _meant(form, group, snapshot)
    change = _Change(snapshot.cluster_by_id[group.cluster], group, after)

    def foresee() -> Preview:
        if after is None:
            groups = changed_groups(snapshot, (group,), (), ())
            return Preview(asked.site.made.foreseen(snapshot, groups))
        judged = judge(snapshot, after)
        foreseen = asked.site.made.foreseen(snapshot, changed_groups(snapshot, (), (after,), judged.all))
        return Preview(foreseen, (*judged.refusals, *judged.unchecked), judged.warnings)

    def carry_out(who: str) -> None:
        # By the token of the session: the engine decides, and its events name the person.
        with closing(EngineConnection(asked.config.engine, {VARIABLE: asked.session.token})) as connection:
            if group.id and form["was"] != _state_now(connection, group.id):
                raise Stale(_CHANGED)
            _recorded(asked, who, change, connection)

    cluster = change.cluster
    act = Act(
        change.kind.value.replace("_", " "),
        (cluster,),
        carry_out,
        f"/cluster/{cluster.id}" if gone or not group.id else f"/group/{group.id}",
        permits=(PERMIT,),
        on=f"affinity group {group.name or form['name']} of cluster {cluster.name} ({cluster.id})",
    )
    return Edit(act, _shown(change, form), foresee)


def _shown(change: _Change, form: Mapping[str, str]) -> Shown:
    verb = "Remove" if change.after is None else "Edit" if change.before.id else "New"
    address = f"/cluster/{change.cluster.id}/new-group"
    if change.before.id:
        address = f"/group/{change.before.id}/edit"
    before = ((change.before.name, f"/group/{change.before.id}"),) if change.before.id else ()
    return "group_form.html", {
        "crumbs": (("Rules", "/rules"), *before, (verb if before else "New affinity group", "")),
        "cluster": change.cluster,
        "group": change.before,
        "form": form,
        "lists": _LISTS,
        "verb": verb,
        "action": address,
        "preview": None,
    }


def _filled(group: AffinityGroup, snapshot: Snapshot) -> dict[str, str]:
    """What stands in the fields of a group as it is; members as a name a line."""
    form = {"name": group.name, "priority": f"{group.priority:.7f}".rstrip("0").rstrip(".")}
    for of, rule in (("vms", group.vms_rule), ("hosts", group.hosts_rule)):
        polarity = "disabled" if not rule.enabled else "positive" if rule.positive else "negative"
        form |= {f"{of}_rule": polarity, f"{of}_enforcing": "on" if rule.enforcing else ""}
    for name in _LISTS:
        form[name] = "\n".join(_name(table_of(name, snapshot), member) for member in getattr(group, name))
    return {**form, "was": _state_of(group)}


def _empty(cluster: Cluster) -> AffinityGroup:
    """A group that is to be made in a cluster."""
    fields: dict[str, Any] = {"vms_rule": _OFF, "hosts_rule": _OFF, **dict.fromkeys(_LISTS, ())}
    return AffinityGroup(id="", name="", cluster=cluster.id, priority=1.0, **fields)


def _meant(form: Mapping[str, str], group: AffinityGroup, snapshot: Snapshot) -> AffinityGroup:
    """The group as it is to be; raises `Refusal` for what means nothing."""
    members: dict[str, Any] = {}
    for name in MEMBERS:
        try:
            members[name] = tuple(_member(word, name, group, snapshot) for word in words_of(form[name]))
        except UserError as error:
            raise Refusal(400, f"{_LISTS[name]}: there is {error}.") from None
    try:
        name = stored_text(form["name"])
    except UserError as error:
        raise Refusal(400, f"Name: {error}.") from None
    try:
        priority = stored_priority(float(form["priority"]))
    except (ValueError, UserError):
        raise Refusal(400, "A priority is a number, such as 1 or 2.5.") from None
    rules = {f"{of}_rule": _rule(form[f"{of}_rule"], form[f"{of}_enforcing"]) for of in ("vms", "hosts")}
    return msgspec.structs.replace(group, name=name, priority=priority, **rules, **members)


def _member(word: str, name: str, group: AffinityGroup, snapshot: Snapshot) -> str:
    """Those that are in the group already come before others of the same name."""
    table = table_of(name, snapshot)
    own = [one for one in getattr(group, name) if _name(table, one) == word]
    return str(own[0] if len(own) == 1 else find_member(word, name, group.cluster, snapshot).id)


def _name(table: Mapping[str, Any], member: str) -> str:
    """As a form shows it: with codes for marks that would turn a line round."""
    return escaped(str(table[member].name)) if member in table else member


def _rule(polarity: str, enforcing: str) -> AffinityRule:
    if polarity not in ("disabled", "positive", "negative"):
        raise Refusal(400, "A rule is disabled, positive or negative.")
    return AffinityRule(
        enabled=polarity != "disabled", positive=polarity == "positive", enforcing=bool(enforcing)
    )


def _state_of(group: AffinityGroup) -> str:
    """Another text once anything of the group has changed."""
    ordered = {name: tuple(sorted(getattr(group, name))) for name in _LISTS}
    return digest(msgspec.structs.replace(group, **ordered))


def _state_now(connection: EngineConnection, group_id: str) -> str:
    """What the engine has, which may be newer than what the page knows; empty of a group that is gone."""
    groups, _ = read_groups(connection)
    return next((_state_of(one) for one in groups if one.id == group_id), "")


def _recorded(asked: Asked, who: str, change: _Change, connection: EngineConnection) -> None:
    """Have the engine do it in the person's name; begun and ended in the store, as commands do."""
    before, after = change.before, change.after
    act = Recorded(
        kind=change.kind,
        login=who,
        engine_user=who,
        cluster=change.cluster.id,
        cluster_name=change.cluster.name,
        subject=before.name or (after.name if after else ""),
        details=() if after is None else tuple(differences(before, after, asked.snapshot)),
    )
    with opened(UserActionStore, asked.config) as store:
        number = store.begin(act)
        try:
            if after is None:
                remove_group(connection, before.cluster, before.id)
            else:
                save_group(connection, before if before.id else None, after)
        except BaseException as error:
            _end_record(store, number, str(error) or type(error).__name__)
            if isinstance(error, EngineAway) and error.request_sent:
                raise OutcomeUnknown(str(error)) from None
            raise
        _end_record(store, number)


def _end_record(store: UserActionStore, number: int, error: str | None = None) -> None:
    """What the engine has done is done, whether that is recorded or not."""
    try:
        store.end(number, error)
    except UserError as away:
        _log.warning("it is not recorded how the change of an affinity group ended: %s", away)
