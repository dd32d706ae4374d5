"""The placement rules, who changed each last, and whether it is satisfied."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ovirt_placement.answers.document import Document
from ovirt_placement.answers.rules.rule import RuleRecord, asked, rule_record, strength
from ovirt_placement.answers.sentences import listed, utc_text
from ovirt_placement.model import Snapshot
from ovirt_placement.model.record import Record
from ovirt_placement.rules.placement_rules import restart_after
from ovirt_placement.rules.placement_rules.members import resolved_rules
from ovirt_placement.store.placement_rules import SetRule

HEADERS = ("rule", "cluster", "asks", "VMs", "strength", "state")
_AUTHORS = ("changed by", "changed at")


class ListedRule(Record, frozen=True, omit_defaults=False):
    """A rule, and who changed it last and when (seconds since the epoch); null where nobody knows."""

    record: RuleRecord
    changed_by: str | None
    changed_at: float | None


class RulesListDocument(Document, frozen=True, kw_only=True, tag="rules_list"):
    """Placement rules."""

    rules: tuple[ListedRule, ...]

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong with any rule."""
        return not any(one.record.problems for one in self.rules)


def rules_list(
    snapshot: Snapshot, authors: Mapping[str, SetRule], names: tuple[str, ...] = ()
) -> RulesListDocument:
    """All rules of a state, or those of these names; `authors` by name, where the store knows."""
    return RulesListDocument(
        rules=tuple(
            _listed(rule_record(found, snapshot), authors.get(found.rule.name))
            for found in resolved_rules(snapshot)
            if not names or found.rule.name in names
        )
    )


def _listed(record: RuleRecord, author: SetRule | None) -> ListedRule:
    if author is None:
        return ListedRule(record, None, None)
    return ListedRule(record, author.changed_by, author.changed_at)


# -- in words


def headers(answer: RulesListDocument) -> tuple[str, ...]:
    """Who changed the rules stands there where it is known."""
    return (*HEADERS, *_AUTHORS) if _authored(answer) else HEADERS


def rows(answer: RulesListDocument) -> list[tuple[str, ...]]:
    """In words: the rule, its cluster, what it asks, of how many VMs, how strongly, and how it stands."""
    authored = _authored(answer)
    return [
        (
            one.record.rule.name,
            one.record.cluster.name if one.record.cluster else one.record.rule.cluster,
            asked(one.record.rule),
            _count(one.record),
            strength(one.record.rule),
            state(one.record),
            *((one.changed_by or "", utc_text(one.changed_at or 0)) if authored else ()),
        )
        for one in answer.rules
    ]


def _count(record: RuleRecord) -> str:
    """How many VMs it names; one that names none is about all of its cluster."""
    words = record.rule.vms or record.rule.other_vms
    return str(len(record.vms) + len(record.other_vms)) if words else "all"


def state(record: RuleRecord) -> str:
    """Whether it is satisfied, and what is wrong with it."""
    standing = {None: "not in force", True: "satisfied", False: "violated"}[record.satisfied]
    return "\n".join((standing, *record.problems))


def lines(answer: RulesListDocument, *, whole: bool = False) -> Iterator[str]:
    """One rule after the other, with all that is known of each."""
    for one in answer.rules:
        record = one.record
        cluster = record.cluster.name if record.cluster else record.rule.cluster
        yield f"{record.rule.name}: {asked(record.rule)}, {strength(record.rule)}, in cluster {cluster}"
        if one.changed_by is not None:
            yield f"  changed by {one.changed_by} at {utc_text(one.changed_at or 0)}"
        for title, words, found in (
            ("VMs", record.rule.vms, record.vms),
            ("other VMs", record.rule.other_vms, record.other_vms),
            ("hosts", record.rule.hosts, record.hosts),
        ):
            if words:
                names = listed([each.name for each in found], whole=whole) or "none"
                yield f"  {title} ({', '.join(words)}): {names}"
        for domain in record.domains:
            hosts = listed([each.name for each in domain.hosts], whole=whole)
            yield f"  domain {domain.name} ({hosts}): {domain.running} of the VMs"
        yield f"  {state(record).replace(chr(10), f'{chr(10)}  ')}"
        if record.offenders:
            who = "may restart too early" if record.rule.kind == restart_after.KIND.name else "breaking it"
            yield f"  {who}: {listed([each.name for each in record.offenders], whole=whole)}"


def _authored(answer: RulesListDocument) -> bool:
    return any(one.changed_at is not None for one in answer.rules)
