"""Reads and writes placement rules as YAML, as they are named."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec
import yaml

from ovirt_placement.model import PlacementRule, Struct
from ovirt_placement.model.key_file import parsed
from ovirt_service import bounded_file
from ovirt_service.decoding import complaint
from ovirt_service.errors import UserError

FORMAT = 1
_MOST_MIB = 64


class RuleFile(Struct, frozen=True):
    """All rules of one file."""

    format: int = FORMAT
    rules: tuple[PlacementRule, ...] = ()


def load(path: Path) -> tuple[PlacementRule, ...]:
    """Read the rules of a file.

    What is wrong with a rule itself is left to the rules. Raises `UserError` if the file cannot be read, has
    another form, or two rules have one name; it gives the place.
    """
    try:
        return loads(bounded_file.read(path, _MOST_MIB))
    except OSError as error:
        raise UserError(f"{path}: cannot read the rules: {error.strerror}") from None
    except UserError as error:
        raise UserError(f"{path}: {error}") from None


def loads(content: bytes) -> tuple[PlacementRule, ...]:
    """Decode a file's content; raises `UserError` as `load` does, without the name of the file."""
    try:
        file = msgspec.convert(parsed(content), RuleFile, strict=True)
    except msgspec.ValidationError as error:
        raise UserError(complaint(error, RuleFile)) from None
    except (yaml.YAMLError, UnicodeDecodeError, ValueError) as error:
        raise UserError(f"not YAML: {' '.join(str(error).split())}") from None
    except RecursionError:
        raise UserError("not YAML: nested too deeply") from None
    if file.format != FORMAT:
        raise UserError(f"format: this release reads format {FORMAT}, not {file.format}")
    first: dict[str, int] = {}
    for at, rule in enumerate(file.rules):
        if not rule.name.strip():
            raise UserError(f"rules[{at}].name: a name cannot be empty")
        if (before := first.setdefault(rule.name, at)) != at:
            raise UserError(f'rules[{at}].name: "{rule.name}" is the name of rules[{before}] already')
    return file.rules


def dumps(rules: Iterable[PlacementRule]) -> str:
    """Encode rules so that `loads` gives the same again."""
    # In ASCII: some characters that YAML takes for line ends are not escaped otherwise.
    return yaml.safe_dump(described(rules), sort_keys=False, default_flow_style=None, width=110)


def described(rules: Iterable[PlacementRule]) -> dict[str, object]:
    """The content of such a file, which may be written as JSON just as well."""
    return {"format": FORMAT, "rules": [msgspec.to_builtins(rule) for rule in rules]}
