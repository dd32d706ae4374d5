"""Reads and writes placement rules as YAML, as they are named."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from ovirt_placement.model import PlacementRule
from ovirt_placement.model.files import yaml_file
from ovirt_service.errors import UserError

FORMAT = 1


class RuleFile(yaml_file.Formatted, frozen=True):
    """All rules of one file."""

    format: int = FORMAT
    rules: tuple[PlacementRule, ...] = ()


def load(path: Path) -> tuple[PlacementRule, ...]:
    """Read the rules of a file.

    What is wrong with a rule itself is left to the rules. Raises `UserError` if the file cannot be read, has
    another form, or two rules have one name; it gives the place.
    """
    return yaml_file.load(path, "rules", loads)


def loads(content: bytes) -> tuple[PlacementRule, ...]:
    """Decode a file's content; raises `UserError` as `load` does, without the name of the file."""
    file = yaml_file.decode(content, RuleFile, FORMAT)
    first: dict[str, int] = {}
    for at, rule in enumerate(file.rules):
        if not rule.name.strip():
            raise UserError(f"rules[{at}].name: a name cannot be empty")
        if (before := first.setdefault(rule.name, at)) != at:
            raise UserError(f'rules[{at}].name: "{rule.name}" is the name of rules[{before}] already')
    return file.rules


def dumps(rules: Iterable[PlacementRule]) -> str:
    """Encode rules so that `loads` gives the same again."""
    return yaml_file.encode(described(rules))


def described(rules: Iterable[PlacementRule]) -> dict[str, object]:
    """The content of such a file, which may be written as JSON just as well."""
    return {"format": FORMAT, "rules": [msgspec.to_builtins(rule) for rule in rules]}
