"""Whose verdict each reason is: a unit's of ours, the engine's own filter's, or both for the same cause."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from ovirt_placement.rules.reasons import Reason
from ovirt_placement.rules.rule import Rule


def by_reason(found: Iterable[tuple[Rule, Reason]]) -> dict[Reason, tuple[Rule, ...]]:
    """The reasons, each once, in the order found, with all rules that give it.

    Where the engine's own filter refuses a host for the same cause as its twin of ours, one reason stands for
    both: ours, which must come first.
    """
    rules: defaultdict[Reason, dict[Rule, None]] = defaultdict(dict)
    ours: defaultdict[tuple[str | None, ...], list[Reason]] = defaultdict(list)
    for rule, reason in found:
        if reason.kind.veto:
            for twin in rule.twins:
                ours[(twin, *_cause(reason))].append(reason)
        same = ours.get((rule.name, *_cause(reason))) if reason.kind.veto else None
        for reported in same or (reason,):
            rules[reported][rule] = None
    return {reason: tuple(givers) for reason, givers in rules.items()}


def _cause(reason: Reason) -> tuple[str | None, str | None]:
    """A peer and where it is, by whichever group; else the VM and the group that ties it to hosts."""
    return reason.vm, reason.group if reason.host is None else reason.host
