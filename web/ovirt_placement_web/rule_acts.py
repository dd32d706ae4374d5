"""Placement rules are added, changed and removed: foreseen first, then in the store, as by the command."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from ovirt_placement.answers.preview import changed_rules
from ovirt_placement.answers.rule_changes import Checking, read_engine, refuse_mistakes, rule_kinds
from ovirt_placement.answers.what_if import WhatIfDocument
from ovirt_placement.model import Cluster, PlacementRule, RuleDomain
from ovirt_placement.store.opening import opened
from ovirt_placement.store.placement_rules import RuleChange, RuleStore
from ovirt_placement_web.acting import Asked, Stale, asked_by, carried_out, cluster_of
from ovirt_placement_web.bounds import Refusal
from ovirt_placement_web.keeper import View
from ovirt_placement_web.pages import Shown, found, viewed
from ovirt_placement_web.settings import ENGINE_SECONDS
from ovirt_placement_web.site import Site
from ovirt_placement_web.stored import stored
from ovirt_service.errors import UserError
from ovirt_service.legible import escaped

PERMIT = "manipulate_affinity_groups"
_CHANGED = "the rule has changed since you looked at it: look at it again"
_LONGEST = 255
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
_COUNTED = {"vms": "VMs", "vcpus": "vCPUs", "memory_mb": "MiB of memory"}


class Looked(NamedTuple):
    """What would come of a change; what speaks against it, in sentences."""

    against: tuple[str, ...]
    foreseen: WhatIfDocument | None


@viewed("rule")
def rule_form(site: Site, request: Request, view: View) -> Shown:
    """The form of a rule of a cluster that stands, or of a new one."""
    cluster, name = found(request, "cluster", view.snapshot.clusters), request.query_params.get("rule", "")
    rule = _standing(site).get(name)
    if name and rule is None:
        raise Refusal(404, "There is no such placement rule.")
    return "rule_form.html", _shown(cluster, filled(rule), gone=False)


async def change_rule(request: Request) -> Response:
    """What would come of it; or, by the button that stands there, the act."""
    asked = await asked_by(request)
    cluster, form, gone = cluster_of(request, asked), _sent(asked.form), "gone" in asked.form
    meant = RuleChange(remove=(form["name"],)) if gone else RuleChange(put=(rule_meant(form, cluster),))
    if "do" in asked.form:
        return await _done(asked, cluster, form, meant)
    view = asked.site.keeper.view
    looked = await asked.site.bounds.plans.run(asked.session, _look, asked.site, meant)
    shown = _shown(cluster, form, gone=gone) | {"looked": looked}
    return asked.site.page(request, "rule_form.html", view=view, **shown)


def filled(rule: PlacementRule | None) -> dict[str, str]:
    """The fields of a form for a rule that stands, or of an empty one."""
    if rule is None:
        return _sent({"enforcing": "yes", "continuous": "yes", "enabled": "yes", "priority": "1"})
    form = {"name": rule.name, "kind": rule.kind, "counted": rule.counted, "priority": f"{rule.priority:g}"}
    form |= {name: "\n".join(map(escaped, getattr(rule, name))) for name in _LISTS}
    form |= {name: str(number) for name in _NUMBERS if (number := getattr(rule, name)) is not None}
    form["domains"] = "\n".join(
        f"{escaped(one.name)}={','.join(map(escaped, one.hosts))}" for one in rule.domains
    )
    form |= {name: "yes" for name in ("enforcing", "continuous", "enabled") if getattr(rule, name)}
    return _sent(form) | {"was": _state_of(rule)}


def rule_meant(form: Mapping[str, str], cluster: Cluster) -> PlacementRule:
    """The rule as it is to be; raises `Refusal` for what means nothing."""
    fields: dict[str, Any] = {name: tuple(_lines(form[name])) for name in _LISTS}
    try:
        fields |= {name: int(form[name]) for name in _NUMBERS if form[name]}
        priority = float(form["priority"] or 1)
    except ValueError:
        raise Refusal(
            400, "Limits are whole numbers, and a priority is a number, such as 1 or 2.5."
        ) from None
    rule = PlacementRule(
        name=form["name"],
        kind=form["kind"],
        cluster=cluster.id,
        domains=tuple(map(_domain, _lines(form["domains"]))),
        counted=form["counted"] or "vms",
        enforcing=bool(form["enforcing"]),
        priority=priority,
        continuous=bool(form["continuous"]),
        enabled=bool(form["enabled"]),
        **fields,
    )
    try:
        refuse_mistakes((rule,))
    except UserError as error:
        raise Refusal(400, f"{str(error)[:1].upper()}{str(error)[1:]}.") from None
    return rule


def _sent(form: Mapping[str, str]) -> dict[str, str]:
    fields = ("name", "kind", "counted", "priority", "enforcing", "continuous", "enabled", "domains", "was")
    sent = {
        field: form.get(field, "").replace("\r\n", "\n").strip() for field in (*fields, *_LISTS, *_NUMBERS)
    }
    if len(sent["name"]) > _LONGEST:
        raise Refusal(400, f"Name: {_LONGEST} characters at most.")
    return sent


def _lines(text: str) -> Iterable[str]:
    return dict.fromkeys(word.strip() for word in text.split("\n") if word.strip())


def _domain(line: str) -> RuleDomain:
    name, _, hosts = line.partition("=")
    words = tuple(word.strip() for word in hosts.split(",") if word.strip())
    if not name.strip() or not words:
        raise Refusal(400, "Write a failure domain as NAME=HOST,HOST.")
    return RuleDomain(name=name.strip(), hosts=words)


def _state_of(rule: PlacementRule | None) -> str:
    """Another text once anything of a rule has changed; empty of none."""
    return "" if rule is None else hashlib.sha256(msgspec.json.encode(rule)).hexdigest()[:16]


def _standing(site: Site) -> dict[str, PlacementRule]:
    return {one.rule.name: one.rule for one in stored(RuleStore, site.config, RuleStore.all_rules)}


def _look(site: Site, meant: RuleChange) -> Looked:
    """By the rules as they stand, and by the engine's state with all that they name."""
    standing = _standing(site)
    engine = read_engine(site.config, (*standing.values(), *meant.put), ENGINE_SECONDS)
    against = tuple(Checking(engine).wrong(standing, meant))
    now = msgspec.structs.replace(engine, placement_rules=tuple(standing.values()))
    return Looked(against, site.made.foreseen(now, changed_rules(now, meant, against)))


async def _done(asked: Asked, cluster: Cluster, form: Mapping[str, str], meant: RuleChange) -> Response:
    def carry_out(who: str) -> None:
        config = asked.site.config
        engine = read_engine(config, (*_standing(asked.site).values(), *meant.put), ENGINE_SECONDS)
        checking = Checking(engine)

        def decide(rules: tuple[PlacementRule, ...]) -> RuleChange:
            standing = {one.name: one for one in rules}
            if _state_of(standing.get(form["name"])) != form["was"]:
                raise Stale(_CHANGED, back=f"/cluster/{cluster.id}/rules")
            if wrong := checking.wrong(standing, meant):
                raise Stale(f"{'; '.join(wrong[:5])}.", back=f"/cluster/{cluster.id}/rules")
            return meant

        with opened(RuleStore, config) as store:
            store.change(decide, changed_by=who)

    act = "rule remove" if meant.remove else "rule edit" if form["was"] else "rule add"
    on = f"placement rule {form['name']} of cluster {cluster.name} ({cluster.id})"
    back = f"/cluster/{cluster.id}/rules"
    return await carried_out(asked, cluster, act, carry_out, permits=(PERMIT,), on=on, back=back)


def _shown(cluster: Cluster, form: Mapping[str, str], *, gone: bool) -> dict[str, Any]:
    title = f"Edit {form['name']}" if form["was"] else "New placement rule"
    return {
        "part": "Rules",
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
        "looked": None,
    }


def _in_words(summary: str) -> str:
    """What a kind of rule asks, without the names of fields."""
    text = re.sub(r"`\w+`", "N", summary.replace(" (`counted`)", ""))
    return f"{text[:1].upper()}{text[1:]}"
