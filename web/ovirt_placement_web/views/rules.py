"""The form of a placement rule: it is previewed first, then written into the store, as by the command."""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from ovirt_placement.answers.rule_changes import objections, read_engine, refuse_mistakes, rule_kinds
from ovirt_placement.forecast.changes import changed_rules
from ovirt_placement.model import Cluster, PlacementRule, RuleDomain, Snapshot
from ovirt_placement.model.names import called
from ovirt_placement.store.placement_rules import RuleChange, RuleStore
from ovirt_placement.store.sql.access import opened
from ovirt_placement_web.bounds import Refusal, sentence
from ovirt_placement_web.settings import ENGINE_SECONDS
from ovirt_placement_web.views.endpoints import (
    Act,
    Asked,
    Edit,
    Preview,
    Shown,
    Stale,
    check_length,
    digest,
    edited,
    viewed,
    words_of,
)
from ovirt_service.errors import UserError
from ovirt_service.text import escaped

PERMIT = "manipulate_affinity_groups"
_CHANGED = "the rule has changed since you looked at it: look at it again"
#: Fields of a rule that have several words, a line each in the form, and what they are called.
_LISTS = {
    "vms": "VMs",
    "other_vms": "Other VMs",
    "hosts": "Hosts",
    "domain_tags": "Host tags of failure domains",
}
_NUMBERS = {
    "most": "At most",
    "least": "At least (failure domains)",
    "max_skew": "Largest difference",
    "min_domains": "Failure domains that there should be",
}
_TICKS = ("enforcing", "continuous", "enabled")
_COUNTED = {"vms": "VMs", "vcpus": "vCPUs", "memory_mb": "MiB of memory"}
_FIELDS = ("name", "kind", "counted", "priority", "domains", "was", *_TICKS, *_LISTS, *_NUMBERS)


@viewed("rule")
def rule_form(asked: Asked) -> Shown:
    """The form of a rule of a cluster that stands, or of a new one."""
    cluster, name = asked.cluster, asked.word("rule", "")
    rule = _standing(asked).get(name)
    if name and (rule is None or not _is_about(rule, cluster, asked.snapshot)):
        raise Refusal(404, f"Cluster {cluster.name} has no placement rule {name}.")
    return _shown(cluster, _filled(rule), gone=False)


@edited
def change_rule(asked: Asked) -> Edit:
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
            if _state_of(rule) != form["was"]:
                raise Stale(_CHANGED, back=back)
            if rule is not None and not _is_about(rule, cluster, engine):
                # It takes the permit on the cluster of the rule, which is not the one that was asked about.
                raise Refusal(404, f"Cluster {cluster.name} has no placement rule {rule.name}.")
            if wrong := objections(engine, standing, meant):
                raise Stale(f"{'; '.join(wrong[:5])}.", back=back)
            return meant

        with opened(RuleStore, site.config) as store:
            store.change(decide, changed_by=who)

    act = "rule remove" if gone else "rule edit" if form["was"] else "rule add"
    on = f"placement rule {form['name']} of cluster {cluster.name} ({cluster.id})"
    return Edit(
        Act(act, (cluster,), carry_out, back, permits=(PERMIT,), on=on),
        _shown(cluster, form, gone=gone),
        foresee,
    )


def _filled(rule: PlacementRule | None) -> dict[str, str]:
    """The fields of a form for a rule that stands, or of an empty one."""
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
        "was": _state_of(rule),
    }


def _meant(form: Mapping[str, str], cluster: Cluster) -> PlacementRule:
    """The rule as it is to be; raises `Refusal` for what means nothing."""
    try:
        numbers: dict[str, Any] = {name: int(form[name]) for name in _NUMBERS if form[name]}
        priority = float(form["priority"] or 1)
    except ValueError:
        text = "Limits are whole numbers, and a priority is a number, such as 1 or 2.5."
        raise Refusal(400, text) from None
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


def _state_of(rule: PlacementRule | None) -> str:
    """Another text once anything of a rule has changed; empty of none."""
    return "" if rule is None else digest(rule)


def _is_about(rule: PlacementRule, cluster: Cluster, snapshot: Snapshot) -> bool:
    return [one.id for one in called(rule.cluster, snapshot.clusters)] == [cluster.id]


def _standing(asked: Asked) -> dict[str, PlacementRule]:
    return {one.rule.name: one.rule for one in asked.site.past.read(RuleStore, RuleStore.all_rules)}


def _shown(cluster: Cluster, form: Mapping[str, str], *, gone: bool) -> Shown:
    title = f"Edit {form['name']}" if form["was"] else "New placement rule"
    return "rule_form.html", {
        "crumbs": (("Rules", "/rules"), (cluster.name, f"/cluster/{cluster.id}/rules"), (title, "")),
        "title": title,
        "cluster": cluster,
        "form": form,
        "kinds": {name: _in_words(text) for name, text in rule_kinds().items()},
        "lists": _LISTS,
        "numbers": _NUMBERS,
        "counted": _COUNTED,
        "may": PERMIT,
        "gone": gone,
        "preview": None,
    }


def _in_words(summary: str) -> str:
    """What a kind of rule asks, without the names of fields."""
    text = re.sub(r"`\w+`", "N", summary.replace(" (`counted`)", ""))
    return f"{text[:1].upper()}{text[1:]}"
