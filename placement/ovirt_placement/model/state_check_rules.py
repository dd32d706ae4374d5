"""Refuses placement rules of a state file that cannot be: of no name, or of one name twice."""

from __future__ import annotations

from ovirt_placement.model import Snapshot
from ovirt_service.errors import UserError


def check_rules(snapshot: Snapshot) -> None:
    """Check the names of rules; members that are not there stop no placement, and are reported elsewhere.

    Raises `UserError` for the first that is wrong, by its path: `placement_rules[3].name: ...`.
    """
    first: dict[str, int] = {}
    for at, rule in enumerate(snapshot.placement_rules):
        path = f"placement_rules[{at}].name"
        if not rule.name:
            raise UserError(f"{path}: a name cannot be empty")
        if (before := first.setdefault(rule.name, at)) != at:
            raise UserError(f'{path}: "{rule.name}" is the name of placement_rules[{before}] already')
