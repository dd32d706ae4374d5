"""The forms of rules: affinity groups are changed by the engine, placement rules in the store."""

import logging
import re
from collections.abc import Mapping
from contextlib import closing
from typing import Any

import msgspec

from ovirt_placement.answers.group_changes import judge
from ovirt_placement.answers.groups import MEMBERS, differences, find_member, polarity_of, rule_of, table_of
from ovirt_placement.answers.rule_changes import objections, read_engine, refuse_mistakes, rule_kinds
from ovirt_placement.engine.actions import remove_group, save_group
from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.connection.failures import EngineAway
from ovirt_placement.engine.connection.log_ins import VARIABLE
from ovirt_placement.engine.topology import read_groups
from ovirt_placement.forecast.changes import changed_groups, changed_rules
from ovirt_placement.model import AffinityGroup, Cluster, PlacementRule, RuleDomain, Snapshot
from ovirt_placement.model.names import called
from ovirt_placement.model.yaml_files import stored_priority, stored_text
from ovirt_placement.store.placement_rules import RuleChange, RuleStore
from ovirt_placement.store.sql.access import opened
from ovirt_placement.store.user_actions import Act as Recorded
from ovirt_placement.store.user_actions import UserActionKind, UserActionStore
from ovirt_placement_web.bounds import Refusal, sentence
from ovirt_placement_web.settings import ENGINE_SECONDS
from ovirt_placement_web.views.endpoints import (
    Act,
    Asked,
    Preview,
    Shown,
    Stale,
    acted,
    check_length,
    digest,
    viewed,
    words_of,
)
from ovirt_service.errors import OutcomeUnknown, UserError
from ovirt_service.text import escaped

PERMIT = "manipulate_affinity_groups"
#: The member lists with what they are called.
_MEMBERS = {"vms": "VMs", "vm_labels": "VM labels", "hosts": "Hosts", "host_labels": "Host labels"}
_POLARITIES = ("vms_rule", "vms_enforcing", "hosts_rule", "hosts_enforcing")
_GROUP_FIELDS = ("name", "priority", "was", *_POLARITIES, *_MEMBERS)

_log = logging.getLogger(__name__)


@viewed()
def edit_form(asked: Asked) -> Shown:
    """The form of a group that there is, or of a new one of a cluster."""
    group = _group_of(asked)
    return _group_form(asked, group, _filled_group(group, asked.snapshot))


@acted
def edit(asked: Asked) -> Act:
    """The change of a group; one without an id is to be added."""
    snapshot, group = asked.snapshot, _group_of(asked)
    gone, form = asked.removes and group.id != "", asked.fields(*_GROUP_FIELDS)
    if gone:
        form = _filled_group(group, snapshot) | {"was": form["was"]}
    after = None if gone else _meant_group(form, group, snapshot)
    kind = UserActionKind.GROUP_EDIT if group.id else UserActionKind.GROUP_ADD
    kind = UserActionKind.GROUP_REMOVE if gone else kind
    cluster = snapshot.cluster_by_id[group.cluster]
    name = group.name or form["name"]

    def foresee() -> Preview:
        if after is None:
            groups = changed_groups(snapshot, (group,), (), ())
            return Preview(asked.site.made.foreseen(snapshot, groups))
        judged = judge(snapshot, after)
        foreseen = asked.site.made.foreseen(snapshot, changed_groups(snapshot, (), (after,), judged.all))
        return Preview(foreseen, (*judged.refusals, *judged.unchecked), judged.warnings)

    def carry_out(who: str) -> None:
        act = Recorded(
            kind=kind,
            login=who,
            engine_user=who,
            cluster=cluster.id,
            cluster_name=cluster.name,
            subject=name,
            details=() if after is None else tuple(differences(group, after, snapshot)),
        )
        # By the token of the session: the engine decides, and its events name the person.
        with closing(EngineConnection(asked.config.engine, {VARIABLE: asked.session.token})) as connection:
            # What the engine has may be newer than what the page knows.
            now = {one.id: one for one in read_groups(connection)[0]} if group.id else {}
            if group.id and (group.id not in now or form["was"] != state_of_group(now[group.id])):
                raise Stale("somebody has changed this group since you looked at it: look at it again")
            _save(asked, act, connection, group, after)

    return Act(
        kind.value.replace("_", " "),
        (cluster,),
        carry_out,
        f"/cluster/{cluster.id}" if gone or not group.id else f"/group/{group.id}",
        permits=(PERMIT,),
        on=f"affinity group {name} of cluster {cluster.name} ({cluster.id})",
        form=_group_form(asked, group, form, gone=gone),
        foresee=foresee,
    )


def _group_of(asked: Asked) -> AffinityGroup:
    """The one that the address names; an empty one where it names a cluster."""
    if not asked.request.url.path.endswith("/new-group"):
        return asked.named("affinity group", asked.snapshot.affinity_groups)
    fields: dict[str, Any] = dict.fromkeys(("vms_rule", "hosts_rule"), rule_of("disabled", enforcing=False))
    fields |= dict.fromkeys(_MEMBERS, ())
    return AffinityGroup(id="", name="", cluster=asked.cluster.id, priority=1.0, **fields)


def _group_form(asked: Asked, group: AffinityGroup, form: Mapping[str, str], *, gone: bool = False) -> Shown:
    cluster = asked.snapshot.cluster_by_id[group.cluster]
    verb = "Remove" if gone else "Edit" if group.id else "New"
    shown = {"cluster": cluster, "group": group, "form": form, "lists": _MEMBERS, "verb": verb}
    return "group_form.html", {**shown, "preview": None}


def _filled_group(group: AffinityGroup, snapshot: Snapshot) -> dict[str, str]:
    """What stands in the fields of a group as it is; members as a name a line."""
    form = {"name": group.name, "priority": f"{group.priority:.7f}".rstrip("0").rstrip(".")}
    for of, rule in (("vms", group.vms_rule), ("hosts", group.hosts_rule)):
        form |= {f"{of}_rule": polarity_of(rule), f"{of}_enforcing": "on" if rule.enforcing else ""}
    for name in _MEMBERS:
        form[name] = "\n".join(_name(table_of(name, snapshot), member) for member in getattr(group, name))
    return {**form, "was": state_of_group(group)}


def _meant_group(form: Mapping[str, str], group: AffinityGroup, snapshot: Snapshot) -> AffinityGroup:
    members: dict[str, Any] = {}
    for name in MEMBERS:
        try:
            members[name] = tuple(_member(word, name, group, snapshot) for word in words_of(form[name]))
        except UserError as error:
            raise Refusal(400, f"{_MEMBERS[name]}: there is {error}.") from None
    try:
        name = stored_text(form["name"])
    except UserError as error:
        raise Refusal(400, f"Name: {error}.") from None
    try:
        priority = stored_priority(float(form["priority"]))
    except (ValueError, UserError):
        raise Refusal(400, "A priority is a number, such as 1 or 2.5.") from None
    rules: dict[str, Any] = {}
    for of in ("vms", "hosts"):
        if (polarity := form[f"{of}_rule"]) not in ("disabled", "positive", "negative"):
            raise Refusal(400, "A rule is disabled, positive or negative.")
        rules[f"{of}_rule"] = rule_of(polarity, enforcing=bool(form[f"{of}_enforcing"]))
    return msgspec.structs.replace(group, name=name, priority=priority, **rules, **members)


def _member(word: str, name: str, group: AffinityGroup, snapshot: Snapshot) -> str:
    """Those that are in the group already come before others of the same name."""
    table = table_of(name, snapshot)
    own = [one for one in getattr(group, name) if _name(table, one) == word]
    return str(own[0] if len(own) == 1 else find_member(word, name, group.cluster, snapshot).id)


def _name(table: Mapping[str, Any], member: str) -> str:
    """As a form shows it: with codes for marks that would turn a line round."""
    return escaped(str(table[member].name)) if member in table else member


def state_of_group(group: AffinityGroup) -> str:
    """Another text once anything of the group has changed."""
    ordered = {name: tuple(sorted(getattr(group, name))) for name in _MEMBERS}
    return digest(msgspec.structs.replace(group, **ordered))


def _save(
    asked: Asked,
    act: Recorded,
    connection: EngineConnection,
    group: AffinityGroup,
    after: AffinityGroup | None,
) -> None:
    """Have the engine do it in the person's name; begun and ended in the store, as commands do."""
    with opened(UserActionStore, asked.config) as store:
        number, failure = store.begin(act), None
        try:
            if after is None:
                remove_group(connection, group.cluster, group.id)
            else:
                save_group(connection, group if group.id else None, after)
        except BaseException as error:
            failure = str(error) or type(error).__name__
            if isinstance(error, EngineAway) and error.request_sent:
                raise OutcomeUnknown(str(error)) from None
            raise
        finally:
            try:
                store.end(number, failure)
            except UserError as away:  # what the engine has done is done, whether that is recorded or not
                _log.warning("it is not recorded how the change of an affinity group ended: %s", away)


# -- Placement rules.


#: Fields of a rule that have several words, a line each in the form.
_LISTS = ("vms", "other_vms", "hosts", "domain_tags")
_NUMBERS = ("most", "least", "max_skew", "min_domains")
_TICKS = ("enforcing", "continuous", "enabled")
_FIELDS = ("name", "kind", "counted", "priority", "domains", "was", *_TICKS, *_LISTS, *_NUMBERS)


@viewed("rule")
def rule_form(asked: Asked) -> Shown:
    """The form of a rule of a cluster that stands, or of a new one."""
    cluster, name = asked.cluster, asked.word("rule")
    rule = _standing(asked).get(name)
    if name and (rule is None or not _is_about(rule, cluster, asked.snapshot)):
        raise Refusal(404, f"Cluster {cluster.name} has no placement rule {name}.")
    return _shown(cluster, _filled(rule), gone=False)


@acted
def change_rule(asked: Asked) -> Act:
    site, cluster, gone = asked.site, asked.cluster, asked.removes
    form, back = asked.fields(*_FIELDS), f"/cluster/{cluster.id}/rules"
    check_length("Name", form["name"])
    meant = RuleChange(remove=(form["name"],)) if gone else RuleChange(put=(_meant(form, cluster),))

    def foresee() -> Preview:
        standing = _standing(asked)
        engine = read_engine(site.config, (*standing.values(), *meant.put), ENGINE_SECONDS)
        against = objections(engine, standing, meant)
        now = msgspec.structs.replace(engine, placement_rules=tuple(standing.values()))
        return Preview(site.made.foreseen(now, changed_rules(now, meant, tuple(against))), against)

    def carry_out(who: str) -> None:
        engine = read_engine(site.config, (*_standing(asked).values(), *meant.put), ENGINE_SECONDS)

        def decide(rules: tuple[PlacementRule, ...]) -> RuleChange:
            standing = {one.name: one for one in rules}
            rule = standing.get(form["name"])
            if form["was"] != (digest(rule) if rule else ""):
                raise Stale("the rule has changed since you looked at it: look at it again", back=back)
            if rule is not None and not _is_about(rule, cluster, engine):
                # It takes the permit on the cluster of the rule, which is not the one that was asked about.
                raise Refusal(404, f"Cluster {cluster.name} has no placement rule {rule.name}.")
            if wrong := objections(engine, standing, meant):
                raise Stale(f"{'; '.join(wrong[:5])}.", back=back)
            return meant

        with opened(RuleStore, site.config) as store:
            store.change(decide, changed_by=who)

    return Act(
        "rule remove" if gone else "rule edit" if form["was"] else "rule add",
        (cluster,),
        carry_out,
        back,
        permits=(PERMIT,),
        on=f"placement rule {form['name']} of cluster {cluster.name} ({cluster.id})",
        form=_shown(cluster, form, gone=gone),
        foresee=foresee,
    )


def _filled(rule: PlacementRule | None) -> dict[str, str]:
    form = dict.fromkeys(_FIELDS, "")
    if rule is None:
        return form | dict.fromkeys(_TICKS, "yes") | {"priority": "1"}
    domains = [f"{escaped(one.name)}={','.join(map(escaped, one.hosts))}" for one in rule.domains]
    return {
        **form,
        **{name: "\n".join(map(escaped, getattr(rule, name))) for name in _LISTS},
        **{name: str(number) for name in _NUMBERS if (number := getattr(rule, name)) is not None},
        **{name: "yes" for name in _TICKS if getattr(rule, name)},
        "name": rule.name,
        "kind": rule.kind,
        "counted": rule.counted,
        "priority": f"{rule.priority:g}",
        "domains": "\n".join(domains),
        "was": digest(rule),
    }


def _meant(form: Mapping[str, str], cluster: Cluster) -> PlacementRule:
    try:
        numbers: dict[str, Any] = {name: int(form[name]) for name in _NUMBERS if form[name]}
        priority = float(form["priority"] or 1)
    except ValueError:
        raise Refusal(
            400, "Limits are whole numbers, and a priority is a number, such as 1 or 2.5."
        ) from None
    lists: dict[str, Any] = {name: words_of(form[name]) for name in _LISTS}
    ticks: dict[str, Any] = {name: bool(form[name]) for name in _TICKS}
    rule = PlacementRule(
        name=form["name"],
        kind=form["kind"],
        cluster=cluster.id,
        domains=tuple(map(_domain, words_of(form["domains"]))),
        counted=form["counted"] or "vms",
        priority=priority,
        **lists,
        **numbers,
        **ticks,
    )
    try:
        refuse_mistakes((rule,))
    except UserError as error:
        raise Refusal(400, sentence(error)) from None
    return rule


def _domain(line: str) -> RuleDomain:
    name, _, hosts = line.partition("=")
    words = tuple(word.strip() for word in hosts.split(",") if word.strip())
    if not name.strip() or not words:
        raise Refusal(400, "Write a failure domain as NAME=HOST,HOST.")
    return RuleDomain(name=name.strip(), hosts=words)


def _is_about(rule: PlacementRule, cluster: Cluster, snapshot: Snapshot) -> bool:
    return [one.id for one in called(rule.cluster, snapshot.clusters)] == [cluster.id]


def _standing(asked: Asked) -> dict[str, PlacementRule]:
    return {one.rule.name: one.rule for one in asked.site.past.read(RuleStore, RuleStore.all_rules)}


def _shown(cluster: Cluster, form: Mapping[str, str], *, gone: bool) -> Shown:
    # Without the names of fields.
    words = {
        name: re.sub(r"`\w+`", "N", text.replace(" (`counted`)", "")) for name, text in rule_kinds().items()
    }
    kinds = {name: f"{text[:1].upper()}{text[1:]}" for name, text in words.items()}
    shown = {"cluster": cluster, "form": form, "kinds": kinds, "may": PERMIT, "gone": gone}
    return "rule_form.html", {**shown, "preview": None}
