"""Placement rules: what stands, how it stands, what is wrong with it, and what was changed."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated

from ovirt_placement.answers.conflicts import NEEDS_PLANNER, ContradictionFound, judge_rules, sentence
from ovirt_placement.answers.document import Columns, Document, Table, listed, table, utc_text
from ovirt_placement.answers.question import AuthoredState, Parameter, Reads, question
from ovirt_placement.model import PlacementRule, Snapshot
from ovirt_placement.model.names import GroupOrRule, NamedCluster, NamedHost, NamedVm, counted, named_groups
from ovirt_placement.model.record import From, Record, with_names
from ovirt_placement.rules.elements.placement import SnapshotPlacement
from ovirt_placement.rules.placement_rules.in_force import (
    constraints_in,
    is_in_force,
    mistakes,
    not_known_yet,
    not_waiting,
    rule_problems,
    why_circular,
)
from ovirt_placement.rules.placement_rules.kind import RESTART_AFTER, Resolved, resolved_rules
from ovirt_placement.rules.placement_rules.limits import CAPACITY
from ovirt_service.decoding import nearest
from ovirt_service.errors import UserError


# -- A placement rule as data: what it asks of whom, and how things stand.
class RuleDomainRecord(Record, frozen=True, omit_defaults=False):
    """A failure domain, its hosts, and how many of the VMs run there."""

    name: str
    hosts: tuple[NamedHost, ...]
    running: int


class RuleRecord(Record, frozen=True, omit_defaults=False, kw_only=True):
    """A rule as it is written, with who it means now."""

    rule: PlacementRule
    #: Null if there is no such cluster.
    cluster: NamedCluster | None
    vms: tuple[NamedVm, ...]
    other_vms: tuple[NamedVm, ...]
    hosts: Annotated[tuple[NamedHost, ...], From(lambda found, _: sorted(found.hosts))]
    domains: Annotated[tuple[RuleDomainRecord, ...], From(lambda found, state: _domains(found, state))]
    #: Whether it is satisfied; null if it is not in force.
    satisfied: bool | None
    #: VMs that violate it; of a restart order, those that the engine may restart too early.
    offenders: tuple[NamedVm, ...]
    #: What is wrong with it, in sentences.
    problems: tuple[str, ...]


def rule_record(found: Resolved, snapshot: Snapshot) -> RuleRecord:
    offenders = _offenders(found, snapshot)
    satisfied = None if offenders is None else not offenders
    problems = (*mistakes(found.rule), *found.problems, *why_circular(snapshot, found.rule.id))
    others = {"satisfied": satisfied, "offenders": offenders or (), "problems": problems}
    return with_names(RuleRecord, found, snapshot, **others)


def _offenders(found: Resolved, snapshot: Snapshot) -> tuple[str, ...] | None:
    """VMs that violate a rule; None if it is not in force."""
    if not is_in_force(found):
        return None
    if found.rule.kind == RESTART_AFTER.name:
        return not_waiting(snapshot, found)
    every = constraints_in(snapshot, found.cluster or "")
    constraint = next((one for one in every if one.groups == (found.rule.id,)), None)
    return None if constraint is None else constraint.offenders(SnapshotPlacement(snapshot))


def _domains(found: Resolved, snapshot: Snapshot) -> Iterator[RuleDomainRecord]:
    hosts = [snapshot.vm_by_id[vm].host or "" for vm in found.vms]
    running = Counter(found.domain_of[host] for host in hosts if host in found.domain_of)
    for domain in dict.fromkeys(found.domain_of.values()):
        own = [host for host, its in found.domain_of.items() if its == domain]
        yield with_names(RuleDomainRecord, (domain, own, running[domain]), snapshot)


def asked(rule: PlacementRule) -> str:
    numbers = ("most", "least", "max_skew", "min_domains")
    given = [f"{name} {getattr(rule, name)}" for name in numbers if getattr(rule, name) is not None]
    if rule.counted != "vms":
        given.append(rule.counted)
    return f"{rule.kind} ({', '.join(given)})" if given else rule.kind


def strength(rule: PlacementRule) -> str:
    """Whether it is hard or soft, and whatever else differs from what is usual."""
    words = ["hard" if rule.enforcing else f"soft, priority {rule.priority:g}"]
    words += [] if rule.continuous else ["in the end"]
    words += [] if rule.enabled else ["disabled"]
    return ", ".join(words)


# -- The placement rules, who changed each last, and whether it is satisfied.
class ListedRule(Record, frozen=True, omit_defaults=False):
    """A rule, and who changed it last and when (seconds since the epoch); null where it is not known."""

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


@question(
    "rules list",
    "the rules that stand",
    "List the placement rules: whether each is satisfied, and who changed it last and when.\n",
    examples="  ovirt-placement rules list\n",
    text=lambda answer, _: _list_text(answer),
    reads=Reads.RULES,
)
def rules_list(state: AuthoredState) -> RulesListDocument:
    return rules_show(state, ())


@question(
    "rules show",
    "rules with all that is known",
    "Show rules with their VMs, hosts, failure domains, and the VMs that violate them.\n",
    examples="  ovirt-placement rules show web\n",
    text=lambda answer, shown: _rule_lines(answer, whole=shown.whole),
    reads=Reads.RULES,
)
def rules_show(
    state: AuthoredState,
    names: Annotated[Sequence[str], Parameter(metavar="NAME", positional=True, argument={"nargs": "*"})],
) -> RulesListDocument:
    """The rules of these names, or all. Raises `UserError` for one that is not there."""
    snapshot, authors = state
    known = [rule.name for rule in snapshot.placement_rules]
    for name in names:
        if name not in known:
            raise UserError(f'no placement rule "{name}"{nearest(name, known)}')
    return RulesListDocument(
        rules=tuple(
            ListedRule(
                rule_record(found, snapshot), author and author.changed_by, author and author.changed_at
            )
            for found in resolved_rules(snapshot)
            if not names or found.rule.name in names
            for author in (authors.get(found.rule.name),)
        )
    )


# -- in words
_COLUMNS: Columns = {
    "rule": lambda one: one.record.rule.name,
    "cluster": lambda one: one.record.cluster.name if one.record.cluster else one.record.rule.cluster,
    "asks": lambda one: asked(one.record.rule),
    "VMs": lambda one: count_text(one.record),
    "strength": lambda one: strength(one.record.rule),
    "state": lambda one: state_text(one.record),
}
_AUTHORS: Columns = {
    "changed by": lambda one: one.changed_by or "",
    "changed at": lambda one: utc_text(one.changed_at or 0),
}


def _list_text(answer: RulesListDocument) -> Iterator[str | Table]:
    authored = any(one.changed_at is not None for one in answer.rules)
    columns = {**_COLUMNS, **(_AUTHORS if authored else {})}
    yield table(answer.rules, columns) if answer.rules else "No placement rules."


def count_text(record: RuleRecord) -> str:
    """How many VMs it is about; a capacity that names none is about all of its cluster."""
    of_all = record.rule.kind == CAPACITY.name and not record.rule.vms
    return "all" if of_all else str(len(record.vms) + len(record.other_vms))


def state_text(record: RuleRecord) -> str:
    standing = {None: "not in force", True: "satisfied", False: "violated"}[record.satisfied]
    return "\n".join((standing, *record.problems))


def _rule_lines(answer: RulesListDocument, *, whole: bool = False) -> Iterator[str]:
    """One rule after the other, with all that is known of each."""
    for rule in answer.rules:
        record = rule.record
        cluster = record.cluster.name if record.cluster else record.rule.cluster
        yield f"{record.rule.name}: {asked(record.rule)}, {strength(record.rule)}, in cluster {cluster}"
        if rule.changed_by is not None:
            yield f"  changed by {rule.changed_by} at {utc_text(rule.changed_at or 0)}"
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
        yield f"  {state_text(record).replace(chr(10), f'{chr(10)}  ')}"
        if record.offenders:
            who = "may restart too early" if record.rule.kind == RESTART_AFTER.name else "violated by"
            yield f"  {who}: {listed([each.name for each in record.offenders], whole=whole)}"


# -- What is wrong with placement rules: by themselves, with whom they name, and with one another.
class RuleProblem(Record, frozen=True, omit_defaults=False):
    """Something that is wrong with a rule."""

    rule: GroupOrRule
    sentence: str


class RulesCheckDocument(Document, frozen=True, kw_only=True, tag="rules_check"):
    """What is wrong with placement rules."""

    rules: int
    problems: tuple[RuleProblem, ...]
    #: Rules whose VMs are not known yet, in a sentence each.
    not_known_yet: tuple[str, ...] = ()
    #: Hard rules that cannot be satisfied together, a placement rule among them.
    contradictions: tuple[ContradictionFound, ...] = ()
    #: Sets for which it is not known whether they can be satisfied: the work budget ended.
    unknown: tuple[tuple[GroupOrRule, ...], ...] = ()
    #: Sets that cannot be judged without OR-Tools, which is not installed.
    unjudged: tuple[tuple[GroupOrRule, ...], ...] = ()

    @property
    def sound(self) -> bool:
        """Whether nothing is known to be wrong."""
        return not self.problems and not self.contradictions


def rules_check(snapshot: Snapshot, *, together: bool = False) -> RulesCheckDocument:
    """Every mistake, every word that names nothing, and every rule that is impossible by its numbers.

    With `together`, also which cannot be satisfied with one another, groups and keys: that takes longer.
    """
    every = resolved_rules(snapshot)
    problems = tuple(
        with_names(RuleProblem, (found.rule.id, sentence), snapshot)
        for found in every
        for sentence in (*mistakes(found.rule), *rule_problems(snapshot, found))
    )
    clusters = dict.fromkeys(found.cluster for found in every if found.cluster is not None)
    judged = [judge_rules(snapshot, cluster) for cluster in clusters] if together else []
    impossible = {one.rule.id for one in problems}

    def of_rules(sets: Iterable[tuple[str, ...]]) -> tuple[tuple[GroupOrRule, ...], ...]:
        named = (named_groups(one, snapshot) for one in sets)
        return tuple(one for one in named if any(group.is_rule for group in one))

    return RulesCheckDocument(
        rules=len(snapshot.placement_rules),
        problems=problems,
        not_known_yet=tuple(
            why for cluster in snapshot.clusters for why in not_known_yet(snapshot, cluster.id)
        ),
        contradictions=tuple(
            contradiction
            for of_cluster in judged
            for contradiction in of_cluster.contradictions
            if any(group.is_rule for group in contradiction.groups)
            and not (
                len(contradiction.groups) == 1
                and not contradiction.keys_of
                and contradiction.groups[0].id in impossible
            )
        ),
        unknown=of_rules(one for of_cluster in judged for one in of_cluster.unknown),
        unjudged=of_rules(one for of_cluster in judged for one in of_cluster.unjudged),
    )


@question(
    "rules check",
    "what is wrong with rules",
    """\
List mistakes of the rules, or of those of a file: missing fields, names that match nothing, rules that no
placement can satisfy. The exit status is 1 if there is any.
""",
    examples="  ovirt-placement rules check rules.yaml      # before they are applied\n",
    text=lambda answer, _: check_lines(answer),
    status=lambda answer, _: int(not answer.sound),
    options={
        "file": Parameter(
            "check the rules of this file", "FILE", positional=True, argument={"type": Path, "nargs": "?"}
        )
    },
    reads=Reads.RULES,
)
def rules_check_of(state: AuthoredState) -> RulesCheckDocument:
    """What is wrong with the rules of a state, by themselves and together."""
    return rules_check(state.snapshot, together=True)


def check_lines(answer: RulesCheckDocument) -> Iterator[str]:
    yield from (f"{one.rule.name}: {one.sentence}" for one in answer.problems)
    yield from map(sentence, answer.contradictions)
    yield from open_questions(answer)
    if answer.sound and not answer.not_known_yet:
        yield f"No mistakes in {counted(answer.rules, 'placement rule')}."


def open_questions(answer: RulesCheckDocument) -> Iterator[str]:
    """What is not known whether it can be satisfied, and why."""
    yield from (f"not known yet: {one}" for one in answer.not_known_yet)
    for sets, why in ((answer.unknown, "the work allowed ended"), (answer.unjudged, NEEDS_PLANNER)):
        for one in sets:
            names = listed([group.title for group in one])
            yield f"not known whether they can be satisfied together: {names} ({why})"
