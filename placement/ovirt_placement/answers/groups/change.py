"""What became of an affinity group: it was added, changed or removed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from ovirt_placement.answers.document import Document
from ovirt_placement.answers.groups.group import Group, group_record
from ovirt_placement.model import AffinityGroup, Snapshot

Outcome = Literal["added", "changed", "removed", "unchanged"]


class GroupChangeDocument(Document, frozen=True, kw_only=True, tag="group_change"):
    """An affinity group that was added, changed or removed."""

    outcome: Outcome
    group: Group
    warnings: tuple[str, ...]


def group_change(
    snapshot: Snapshot, group: AffinityGroup, outcome: Outcome, warnings: Iterable[str] = ()
) -> GroupChangeDocument:
    """What was done about a group, as it is now, or was when it was removed."""
    return GroupChangeDocument(outcome=outcome, group=group_record(group, snapshot), warnings=tuple(warnings))


def text(answer: GroupChangeDocument) -> str:
    """In a line what was done."""
    done = "left as it is:" if answer.outcome == "unchanged" else answer.outcome
    return f"{done} affinity group {answer.group.name} ({answer.group.id})"
