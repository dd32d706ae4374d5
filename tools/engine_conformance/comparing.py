"""Asks the engine and our copies the same, and reports where they answer otherwise.

A switch is a difference that is meant. A question to which a copy of ours answers otherwise is asked once
more, with the copy's switches carried out. Only if the engine then answers as we do is the difference the
documented one.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, permutations
from typing import Any

from tools.engine_conformance.questions import Asking, Question, questions

#: Of an answer of the engine or of ours, what two must have in common.
Reading = Any
#: Whether the engine's answer to a question and ours are the same.
Agreement = Callable[[Question, Any, Any], bool]


def raised(answer: Any) -> bool:
    """Whether the engine threw."""
    return isinstance(answer, Mapping) and "raised" in answer


def as_hosts(question: Question, answer: Sequence[str]) -> Reading:
    """Which hosts, in whatever order."""
    return sorted(answer)


def as_tiers(question: Question, answer: Mapping[str, int]) -> Reading:
    """Hosts from best to worst, ties together; one that is not mentioned counts as 0, as in the selector."""
    weights = {host: answer.get(host, 0) for host in question.hosts}
    ordered = sorted(set(weights.values()))
    return [sorted(host for host in weights if weights[host] == weight) for weight in ordered]


def as_is(question: Question, answer: Any) -> Reading:
    return answer


def as_placed(question: Question, answer: Mapping[str, Any]) -> Reading:
    """The hosts left, in whatever order, and the best."""
    return sorted(answer["hosts"]), answer["best"]


def as_closure(question: Question, answer: Sequence[str]) -> Reading:
    """What a VM takes along when it is migrated: of the VMs tied to it those on its own host.

    Source: computeVmAffinityClosure of MigrateMultipleVmsCommand, around positiveAffinityClosure.
    """
    place = {vm["id"]: vm["host"] for vm in question.state["vms"]}
    first = question.vms[0]
    return sorted(vm for vm in answer if vm == first or (place[vm] is not None and place[vm] == place[first]))


def as_conflicts(question: Question, answer: Sequence[Mapping[str, Any]]) -> Reading:
    """In the order of their types; those of one type as the tables of the engine have them."""
    lists = ("groups", "vms", "hosts", "negative_vms")
    plain = [{**one, **{key: sorted(one[key]) for key in lists if key in one}} for one in answer]
    return sorted(plain, key=repr), [one["type"] for one in answer]


def as_sets(question: Question, answer: Sequence[Sequence[str]]) -> Reading:
    """The engine makes a set of an empty group, too, on which nothing hangs."""
    return sorted(sorted(one) for one in answer if one)


def same(read: Callable[[Question, Any], Reading]) -> Agreement:
    """Both answers come to the same."""
    return lambda question, engine, ours: bool(read(question, engine) == read(question, ours))


def same_order(question: Question, engine: Sequence[Sequence[str]], ours: Sequence[str]) -> bool:
    """VMs in the order in which they are tried, in any order where the engine shuffles them.

    The engine answers with several runs: what it shuffles ends wherever all have begun with the same VMs.
    """
    begun = 0
    for end in range(1, len(engine[0]) + 1):
        if all(set(run[:end]) == set(engine[0][:end]) for run in engine):
            if set(ours[begun:end]) != set(engine[0][begun:end]):
                return False
            begun = end
    return len(ours) == len(engine[0])


def first_move(
    question: Question, engine: Sequence[Mapping[str, Any]], ours: Mapping[str, Any] | None
) -> bool:
    """The first that the engine would try, and the hosts other than the VM's own in its order."""
    if not engine or ours is None:
        return not engine and ours is None
    place = next(vm["host"] for vm in question.state["vms"] if vm["id"] == engine[0]["vm"])
    hosts = [host for host in engine[0]["hosts"] if host != place]
    return ours["vm"] == engine[0]["vm"] and list(ours["hosts"]) == hosts


def exact(question: Question, engine: Any, ours: Any) -> bool:
    """The same, but for failures that are survived though first fit does not find out how (HC2).

    First fit cannot err where no host has more than one highly available VM.
    """
    counts = Counter(vm["host"] for vm in question.state["vms"] if vm["ha"] and vm["host"] is not None)
    if max(counts.values(), default=0) > 1:
        return set(ours["failed"]) <= set(engine["failed"])
    return set(ours["failed"]) == set(engine["failed"]) and ours["safe"] is engine["safe"]


#: The conflicts that ours are to report alike: of the others, ours ask whether they can be satisfied.
_ALIKE = (
    "VM_TO_HOST_CONFLICT_IN_ENFORCING_POSITIVE_AND_NEGATIVE_AFFINITY",
    "VM_TO_HOST_CONFLICTS_POSITIVE_VM_TO_VM_AFFINITY",
    "VM_TO_VM_AFFINITY_CONFLICTS",
)


def conflicts_alike(question: Question, engine: Any, ours: Any) -> bool:
    """Which groups, VMs and hosts clash; whether that blocks saving is another question (C1, C3, C4)."""

    def told(conflicts: Any) -> list[str]:
        return sorted(
            repr([one["type"], *(sorted(one[key]) for key in ("groups", "vms", "hosts", "negative_vms"))])
            for one in conflicts
            if one["type"] in _ALIKE
        )

    return told(engine) == told(ours)


def refined(question: Question, engine: Any, ours: Any) -> bool:
    """The engine's order of hosts, in which ours may distinguish hosts that tie."""
    pairs = permutations(question.hosts, 2)
    return all(ours[one] < ours[other] for one, other in pairs if engine.get(one, 0) < engine.get(other, 0))


@dataclass(frozen=True)
class Switch:
    """`instead` gives the question without the quirk, `read` what its answer means for the one asked."""

    #: The quirk's in docs/rules.md where it has one.
    name: str
    instead: Callable[[Question], Question] = lambda question: question
    read: Callable[[Question, Any], Any] = lambda question, answer: answer
    #: Whether the engine throws where ours goes on, so that there is nothing to compare with.
    crash: Callable[[str], bool] = lambda where: False


#: How many questions about whole clusters make a whole run.
FEWER = 5_000


@dataclass(frozen=True)
class Copy:
    """One of our answers to what a unit of the engine answers."""

    answer: Callable[[Question], Any]
    switches: tuple[Switch, ...] = ()
    #: Switches of which ours is asked without the quirk, too: that can be compared in no other way.
    beforehand: tuple[Switch, ...] = ()


@dataclass(frozen=True)
class Unit:
    name: str
    kind: str
    asking: Asking
    copies: Mapping[str, Copy]
    agree: Agreement
    #: How many questions make a whole run.
    number: int = 20_000
    #: What is the same in all requests.
    request: Mapping[str, Any] = field(default_factory=dict)

    def questions(self, seed: int, number: int) -> Iterator[Question]:
        return questions(self.kind, self.asking, seed, number, **self.request)


#: Gives the engine's answers to questions, in their order.
Ask = Callable[[Sequence[Question]], list[Any]]

_BATCH = 1000


@dataclass(frozen=True)
class Difference:
    """A question that a copy answers otherwise than the engine, for no reason that has a switch."""

    unit: str
    copy: str
    question: Question
    engine: Any
    ours: Any


@dataclass
class Comparison:
    """What came of the questions for one copy."""

    asked: int = 0
    #: How many documented differences there were, by their switches.
    switched: Counter[str] = field(default_factory=Counter)
    differences: list[Difference] = field(default_factory=list)


def compare(
    unit: Unit, ask: Ask, questions: Iterable[Question], names: Iterable[str] | None = None
) -> dict[str, Comparison]:
    """Compare the copies of a unit, all or those named, with the engine."""
    chosen = {name: unit.copies[name] for name in names or unit.copies if name in unit.copies}
    found = {name: Comparison() for name in chosen}
    remaining = iter(questions)
    while batch := tuple(islice(remaining, _BATCH)):
        answers = ask(batch)
        for name, copy in chosen.items():
            _compare_batch(unit, name, copy, ask, list(zip(batch, answers, strict=True)), found[name])
    return found


def _compare_batch(
    unit: Unit, name: str, copy: Copy, ask: Ask, asked: list[tuple[Question, Any]], into: Comparison
) -> None:
    into.asked += len(asked)
    asked = _beforehand(copy, ask, asked, into)
    answered = [(question, engine, _ours(copy, question)) for question, engine in asked]
    open_ = [one for one in answered if not _agree(unit, *one)]
    changed = [_changed(copy, question) for question, _, _ in open_]
    again = ask([question for question, _ in changed])
    for (question, engine, ours), (_, names), answer in zip(open_, changed, again, strict=True):
        by_switch = _switched(unit, copy, question, answer, ours, names)
        into.switched.update(by_switch)
        if not by_switch:
            into.differences.append(Difference(unit.name, name, question, engine, ours))


def _beforehand(
    copy: Copy, ask: Ask, asked: list[tuple[Question, Any]], into: Comparison
) -> list[tuple[Question, Any]]:
    """The questions, with their answers, as the copy is asked them, too."""
    for switch in copy.beforehand:
        questions = [switch.instead(question) for question, _ in asked]
        others = [after for after, (before, _) in zip(questions, asked, strict=True) if after != before]
        into.switched.update({switch.name: len(others)} if others else {})
        answers = iter(ask(others))
        asked = [
            (after, answer if after == before else next(answers))
            for after, (before, answer) in zip(questions, asked, strict=True)
        ]
    return asked


def _changed(copy: Copy, question: Question) -> tuple[Question, list[str]]:
    """The question with all switches carried out, and those that made a difference to it."""
    names, changed = [], question
    for switch in copy.switches:
        before, changed = changed, switch.instead(changed)
        if changed != before:
            names.append(switch.name)
    return changed, names


def _switched(
    unit: Unit, copy: Copy, question: Question, answer: Any, ours: Any, names: list[str]
) -> list[str]:
    """The switches that explain why we answer otherwise; none if they do not."""
    if raised(answer):
        crashes = [switch.name for switch in copy.switches if switch.crash(answer["where"])]
        return [] if raised(ours) else crashes
    found = list(names)
    for switch in copy.switches:
        before, answer = answer, switch.read(question, answer)
        if answer != before:
            found.append(switch.name)
    return list(dict.fromkeys(found)) if _agree(unit, question, answer, ours) else []


def _ours(copy: Copy, question: Question) -> Any:
    try:
        return copy.answer(question)
    except Exception as error:  # a copy that cannot answer one question must not hide the others
        return {"raised": type(error).__name__, "where": str(error)}


def _agree(unit: Unit, question: Question, engine: Any, ours: Any) -> bool:
    if raised(engine) or raised(ours):
        return False
    return unit.agree(question, engine, ours)
