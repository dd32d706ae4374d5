"""The forms of rules: affinity groups are changed by the engine, placement rules in the store."""

import logging
import re
from collections.abc import Callable, Mapping
from contextlib import closing
from functools import partial
from typing import Any

import msgspec

from ovirt_placement.answers.group_changes import judge
from ovirt_placement.answers.groups import MEMBERS, differences, find_member, polarity_of, rule_of, table_of
from ovirt_placement.answers.rule_changes import (
    domain_named,
    objections,
    read_engine,
    refuse_mistakes,
    rule_kinds,
)
from ovirt_placement.engine.actions import remove_group, save_group
from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.connection.failures import EngineAway
from ovirt_placement.engine.connection.log_ins import VARIABLE
from ovirt_placement.engine.topology import read_groups
from ovirt_placement.forecast import changed_groups, changed_rules
from ovirt_placement.model import AffinityGroup, Cluster, PlacementRule, Snapshot
from ovirt_placement.model.names import called
from ovirt_placement.model.yaml_files import stored_priority, stored_text
from ovirt_placement.store.placement_rules import RuleChange, RuleStore
from ovirt_placement.store.sql.access import opened
from ovirt_placement.store.user_actions import Act as Recorded
from ovirt_placement.store.user_actions import UserActionKind, UserActionStore
from ovirt_placement_web.bounds import Refusal, sentence, unfound
from ovirt_placement_web.settings import ENGINE_SECONDS
from ovirt_placement_web.site import check_length, words_of
from ovirt_placement_web.views.endpoints import Act, Asked, Preview, Shown, Stale, acted, digest, viewed
from ovirt_service.errors import OutcomeUnknown, UserError
from ovirt_service.text import escaped

PERMIT = "manipulate_affinity_groups"
_MEMBERS = {"vms": "VMs", "vm_labels": "VM labels", "hosts": "Hosts", "host_labels": "Host labels"}

_log = logging.getLogger(__name__)


@viewed("/group/{name}/edit", "/cluster/{name}/new-group")
def edit_form(asked: Asked) -> Shown:
    group = _group_of(asked)
    return _group_form(group, _filled_group(group, asked.snapshot))


@acted("/group/{name}/edit", "/cluster/{name}/new-group")
def edit(asked: Asked) -> Act:
    snapshot, group = asked.snapshot, _group_of(asked)
    gone, form = asked.removes and group.id != "", asked.fields
    if gone:
        form = _filled_group(group, snapshot) | {"was": form["was"]}
    after = None if gone else _meant_group(form, group, snapshot)
    kind = UserActionKind("group_remove" if gone else "group_edit" if group.id else "group_add")
    cluster, name = snapshot.cluster_by_id[group.cluster], group.name or form["name"]

    def foresee() -> Preview:
        if after is None:
            groups = changed_groups(snapshot, (group,), (), ())
            return Preview(asked.site.made.foreseen(snapshot, groups))
        judged = judge(snapshot, after)
        foreseen = asked.site.made.foreseen(snapshot, changed_groups(snapshot, (), (after,), judged.all))
        return Preview(foreseen, (*judged.refusals, *judged.unchecked), judged.warnings)

    def carry_out(who: str) -> None:
        details = () if after is None else tuple(differences(group, after, snapshot))
        of: dict[str, Any] = {"cluster": cluster.id, "cluster_name": cluster.name, "subject": name}
        act = Recorded(kind=kind, login=who, engine_user=who, details=details, **of)
        # By the token of the session: the engine decides, and its events name the person.
        own = {VARIABLE: asked.session.token}
        with asked.site.editing, closing(EngineConnection(asked.config.engine, own)) as connection:
            # What the engine has may be newer than what the page knows.
            now = {one.id: one for one in read_groups(connection)[0]} if group.id else {}
            if group.id and (group.id not in now or form["was"] != state_of_group(now[group.id])):
                raise Stale("this group has changed since you looked at it: look at it again")
            if after is None:
                _record(asked, act, partial(remove_group, connection, group.cluster, group.id))
            else:
                _record(asked, act, partial(save_group, connection, group if group.id else None, after))

    back = f"/cluster/{cluster.id}" if gone or not group.id else f"/group/{group.id}"
    on = f"affinity group {name} of cluster {cluster.name} ({cluster.id})"
    act = Act(kind.value.replace("_", " "), (cluster,), carry_out, back, (PERMIT,), on)
    return act._replace(form=_group_form(group, form, gone=gone), foresee=foresee)


def _group_of(asked: Asked) -> AffinityGroup:
    """The one that the address names; an empty one where it names a cluster."""
    if not asked.request.url.path.endswith("/new-group"):
        return asked.named("affinity group", asked.snapshot.affinity_groups)
    none = rule_of("disabled", enforcing=False)
    members: dict[str, Any] = dict.fromkeys(_MEMBERS, ())
    return AffinityGroup("", "", asked.cluster.id, 1.0, vms_rule=none, hosts_rule=none, **members)


def _group_form(group: AffinityGroup, form: Mapping[str, str], *, gone: bool = False) -> Shown:
    return "group_form.html", {"group": group, "form": form, "lists": _MEMBERS, "gone": gone}


def _filled_group(group: AffinityGroup, snapshot: Snapshot) -> dict[str, str]:
    form = {"name": group.name, "priority": f"{group.priority:.7f}".rstrip("0").rstrip(".")}
    for of, rule in (("vms", group.vms_rule), ("hosts", group.hosts_rule)):
        form |= {f"{of}_rule": polarity_of(rule), f"{of}_enforcing": "on" if rule.enforcing else ""}
    for name in _MEMBERS:
        form[name] = "\n".join(_name(table_of(name, snapshot), member) for member in getattr(group, name))
    return {**form, "was": state_of_group(group)}


def _meant_group(form: Mapping[str, str], group: AffinityGroup, snapshot: Snapshot) -> AffinityGroup:
    changed: dict[str, Any] = {}
    for field in MEMBERS:
        try:
            changed[field] = tuple(_member(word, field, group, snapshot) for word in words_of(form[field]))
        except UserError as error:
            raise Refusal(400, f"{_MEMBERS[field]}: {unfound(error)}") from None
    try:
        changed["name"] = stored_text(form["name"])
    except UserError as error:
        raise Refusal(400, f"Name: {error}.") from None
    try:
        changed["priority"] = stored_priority(float(form["priority"]))
    except (ValueError, UserError):
        raise Refusal(400, "A priority is a number, such as 1 or 2.5.") from None
    for of in ("vms", "hosts"):
        if (polarity := form[f"{of}_rule"]) not in ("disabled", "positive", "negative"):
            raise Refusal(400, "A rule is disabled, positive or negative.")
        changed[f"{of}_rule"] = rule_of(polarity, enforcing=bool(form[f"{of}_enforcing"]))
    return msgspec.structs.replace(group, **changed)


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


def _record(asked: Asked, act: Recorded, do: Callable[[], object]) -> None:
    """Do it in the person's name; begun and ended in the store, as commands do."""
    with opened(UserActionStore, asked.config) as store:
        number, failure = store.begin(act), None
        try:
            do()
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


@viewed("/cluster/{name}/rule", query=("rule",))
def rule_form(asked: Asked) -> Shown:
    cluster, name = asked.cluster, asked.word("rule")
    rule = _standing(asked).get(name)
    if name and (rule is None or not _is_about(rule, cluster, asked.snapshot)):
        raise Refusal(404, f"Cluster {cluster.name} has no placement rule {name}.")
    filled = _filled(rule or PlacementRule("", "", cluster.id)) | {"was": digest(rule) if rule else ""}
    return _shown(cluster, filled, gone=False)


@acted("/cluster/{name}/rule")
def change_rule(asked: Asked) -> Act:
    site, cluster, gone = asked.site, asked.cluster, asked.removes
    form, back = asked.fields, f"/cluster/{cluster.id}/rules"
    check_length("Name", form["name"])
    meant = RuleChange(remove=(form["name"],)) if gone else RuleChange(put=(_meant(form, cluster),))

    def foresee() -> Preview:
        now = read_engine(site.config, tuple(_standing(asked).values()), ENGINE_SECONDS, meant.put)
        against = objections(now, meant)
        return Preview(site.made.foreseen(now, changed_rules(now, meant, tuple(against))), against)

    def carry_out(who: str) -> None:
        now = read_engine(site.config, tuple(_standing(asked).values()), ENGINE_SECONDS, meant.put)

        def decide(rules: tuple[PlacementRule, ...]) -> RuleChange:
            rule = next((one for one in rules if one.name == form["name"]), None)
            if form["was"] != (digest(rule) if rule else ""):
                raise Stale("the rule has changed since you looked at it: look at it again")
            if rule is not None and not _is_about(rule, cluster, now):
                # It takes the permit on the cluster of the rule, which is not the one that was asked about.
                raise Refusal(404, f"Cluster {cluster.name} has no placement rule {rule.name}.")
            if wrong := objections(msgspec.structs.replace(now, placement_rules=rules), meant):
                raise Stale("; ".join(wrong[:5]))
            return meant

        with opened(RuleStore, site.config) as store:
            store.change(decide, changed_by=who)

    name = "rule remove" if gone else "rule edit" if form["was"] else "rule add"
    on = f"placement rule {form['name']} of cluster {cluster.name} ({cluster.id})"
    shown = _shown(cluster, form, gone=gone)
    return Act(name, (cluster,), carry_out, back, (PERMIT,), on, form=shown, foresee=foresee)


def _filled(rule: PlacementRule) -> dict[str, str]:
    domains = [f"{escaped(one.name)}={','.join(map(escaped, one.hosts))}" for one in rule.domains]
    return {
        **{name: "\n".join(map(escaped, getattr(rule, name))) for name in _LISTS},
        **{name: "" if (number := getattr(rule, name)) is None else str(number) for name in _NUMBERS},
        **{name: "yes" if getattr(rule, name) else "" for name in _TICKS},
        **{name: getattr(rule, name) for name in ("name", "kind", "counted")},
        "priority": f"{rule.priority:g}",
        "domains": "\n".join(domains),
    }


def _meant(form: Mapping[str, str], cluster: Cluster) -> PlacementRule:
    try:
        numbers = {name: int(form[name]) for name in _NUMBERS if form[name]}
        priority = float(form["priority"] or 1)
    except ValueError:
        text = "Limits are whole numbers, and a priority is a number, such as 1 or 2.5."
        raise Refusal(400, text) from None
    fields: dict[str, Any] = {
        **{name: words_of(form[name]) for name in _LISTS},
        **{name: bool(form[name]) for name in _TICKS},
        **numbers,
        "counted": form["counted"] or "vms",
    }
    try:
        fields["domains"] = tuple(map(domain_named, words_of(form["domains"])))
        rule = PlacementRule(form["name"], form["kind"], cluster.id, priority=priority, **fields)
        refuse_mistakes((rule,))
    except UserError as error:
        raise Refusal(400, sentence(error)) from None
    return rule


def _is_about(rule: PlacementRule, cluster: Cluster, snapshot: Snapshot) -> bool:
    return [one.id for one in called(rule.cluster, snapshot.clusters)] == [cluster.id]


def _standing(asked: Asked) -> dict[str, PlacementRule]:
    return {one.rule.name: one.rule for one in asked.site.past.read(RuleStore, RuleStore.all_rules)}


def _shown(cluster: Cluster, form: Mapping[str, str], *, gone: bool) -> Shown:
    kinds = {}
    for name, text in rule_kinds().items():
        words = re.sub(r"`\w+`", "N", text.replace(" (`counted`)", ""))  # without the names of fields
        kinds[name] = f"{words[:1].upper()}{words[1:]}"
    return "rule_form.html", {"cluster": cluster, "form": form, "kinds": kinds, "gone": gone}
