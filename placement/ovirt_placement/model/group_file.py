"""Reads and writes affinity groups as YAML, in the words that the command's options have."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

import msgspec
import yaml

from ovirt_placement.model import Struct
from ovirt_placement.model.key_file import parsed
from ovirt_service import bounded_file
from ovirt_service.decoding import complaint
from ovirt_service.errors import UserError

FORMAT = 1
_MOST_MIB = 64

Polarity = Literal["positive", "negative", "disabled"]


class GroupEntry(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An affinity group as it is to be; names or ids stand for cluster and members."""

    name: str
    cluster: str
    #: None leaves what is there.
    description: str | None = None
    priority: float = 1.0
    vms_rule: Polarity = "disabled"
    vms_enforcing: bool = False
    hosts_rule: Polarity = "disabled"
    hosts_enforcing: bool = False
    vms: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    vm_labels: tuple[str, ...] = ()
    host_labels: tuple[str, ...] = ()


class GroupFile(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All groups of one file."""

    format: int = FORMAT
    #: Clusters whose groups it lists in full, besides those of its groups: a cluster that is to have none.
    clusters: tuple[str, ...] = ()
    groups: tuple[GroupEntry, ...] = ()


def load(path: Path) -> GroupFile:
    """Read such a file.

    Whether there are such clusters and members is left to the reader. Raises `UserError` if the file cannot
    be read, has another form, or two groups have one name; it gives the place.
    """
    try:
        return loads(bounded_file.read(path, _MOST_MIB))
    except OSError as error:
        raise UserError(f"{path}: cannot read the groups: {error.strerror}") from None
    except UserError as error:
        raise UserError(f"{path}: {error}") from None


def loads(content: bytes) -> GroupFile:
    """Decode a file's content; raises `UserError` as `load` does, without the name of the file."""
    try:
        file = msgspec.convert(parsed(content), GroupFile, strict=True)
    except msgspec.ValidationError as error:
        raise UserError(complaint(error, GroupFile)) from None
    except (yaml.YAMLError, UnicodeDecodeError, ValueError) as error:
        raise UserError(f"not YAML: {' '.join(str(error).split())}") from None
    except RecursionError:
        raise UserError("not YAML: nested too deeply") from None
    if file.format != FORMAT:
        raise UserError(f"format: this release reads format {FORMAT}, not {file.format}")
    first: dict[str, int] = {}
    for at, group in enumerate(file.groups):
        if (before := first.setdefault(group.name, at)) != at:
            raise UserError(f'groups[{at}].name: "{group.name}" is the name of groups[{before}] already')
        if not math.isfinite(group.priority):
            raise UserError(f"groups[{at}].priority: a priority is a number, such as 1 or 2.5")
    return file


def dumps(groups: Iterable[GroupEntry]) -> str:
    """Encode groups so that `loads` gives the same again."""
    # In ASCII: some characters that YAML takes for line ends are not escaped otherwise.
    return yaml.safe_dump(described(groups), sort_keys=False, default_flow_style=None, width=110)


def described(groups: Iterable[GroupEntry]) -> dict[str, object]:
    """The content of such a file, which may be written as JSON just as well."""
    return {"format": FORMAT, "groups": [msgspec.to_builtins(group) for group in groups]}
