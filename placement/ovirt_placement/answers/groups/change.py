"""What became of affinity groups: they were added, changed or removed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

from ovirt_placement.answers.document import ChangeDocument
from ovirt_placement.answers.groups.group import DescribedGroup

Outcome = Literal["added", "changed", "removed", "unchanged"]


class GroupChangeDocument(ChangeDocument, frozen=True, kw_only=True, tag="group_change"):
    """An affinity group that was added, changed or removed."""

    #: Null where there was none; one that would be added in a dry run has no id.
    before: DescribedGroup | None
    #: Null where there is none any more.
    after: DescribedGroup | None
    outcome: Outcome
    group: DescribedGroup
    warnings: tuple[str, ...]


class GroupsChangeDocument(ChangeDocument, frozen=True, kw_only=True, tag="groups_change"):
    """Affinity groups that were added, changed and removed, by their names."""

    #: The groups that are not the same afterwards.
    before: tuple[DescribedGroup, ...]
    after: tuple[DescribedGroup, ...]
    added: tuple[str, ...]
    edited: tuple[str, ...]
    removed: tuple[str, ...]
    unchanged: tuple[str, ...]
    warnings: tuple[str, ...]


def group_change(
    group: DescribedGroup,
    warnings: Iterable[str] = (),
    *,
    before: DescribedGroup | None,
    after: DescribedGroup | None,
    dry_run: bool,
) -> GroupChangeDocument:
    """What was done about a group, as it is now, or was when it was removed."""
    return GroupChangeDocument(
        changed=before != after,
        dry_run=dry_run,
        before=before,
        after=after,
        outcome=_outcome(before, after),
        group=group,
        warnings=tuple(warnings),
    )


def groups_change(
    pairs: Iterable[tuple[DescribedGroup | None, DescribedGroup | None]],
    warnings: Iterable[str] = (),
    *,
    dry_run: bool,
) -> GroupsChangeDocument:
    """What was done about groups, each as it was and as it is."""
    pairs = tuple(pairs)
    touched = [(before, after) for before, after in pairs if before != after]

    def named(outcome: Outcome) -> tuple[str, ...]:
        found = ((after or before, _outcome(before, after)) for before, after in pairs)
        return tuple(group.name for group, each in found if group is not None and each == outcome)

    return GroupsChangeDocument(
        changed=bool(touched),
        dry_run=dry_run,
        before=tuple(before for before, _ in touched if before is not None),
        after=tuple(after for _, after in touched if after is not None),
        added=named("added"),
        edited=named("changed"),
        removed=named("removed"),
        unchanged=named("unchanged"),
        warnings=tuple(warnings),
    )


def _outcome(before: DescribedGroup | None, after: DescribedGroup | None) -> Outcome:
    if before == after:
        return "unchanged"
    if before is None:
        return "added"
    return "removed" if after is None else "changed"


def text(answer: GroupChangeDocument) -> str:
    """In a line what was done."""
    done = "left as it is:" if answer.outcome == "unchanged" else answer.outcome
    identity = f" ({answer.group.id})" if answer.group.id else ""
    tried = "\nNothing was written: this was a dry run." if answer.dry_run and answer.changed else ""
    return f"{done} affinity group {answer.group.name}{identity}{tried}"


def lines(answer: GroupsChangeDocument) -> Iterator[str]:
    """In a line each what was added, changed and removed."""
    for done, names in (
        ("removed", answer.removed),
        ("added", answer.added),
        ("changed", answer.edited),
    ):
        yield from (f"{done} affinity group {name}" for name in names)
    if not answer.changed:
        yield "Nothing to change."
    elif answer.dry_run:
        yield "Nothing was written: this was a dry run."
