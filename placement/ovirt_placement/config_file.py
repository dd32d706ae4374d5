"""Finds the configuration's file, reads it, and says where the inventory of its engine is.

By the standard library alone: under the old proxy each call of a policy unit is a process that needs no more.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ovirt_service import files
from ovirt_service.errors import UserError

DEFAULT_PATH = Path("/etc/ovirt-placement/ovirt-placement.toml")
PATH_VARIABLE = "OVIRT_PLACEMENT_CONFIG"
SECTIONS = ("engine", "inventory", "store", "enforcer", "ha", "web")
#: What an engine is called where the configuration gives it no name: one engine needs none.
DEFAULT_ENGINE = "default"
#: Where the inventory is published (of an engine with a name, in a folder of that name).
DEFAULT_DIRECTORY = Path("/run/ovirt-placement")


def read_sections(
    path: Path | None = None, environment: Mapping[str, str] = os.environ
) -> tuple[dict[str, Any], Path | None]:
    """Return what the file holds, and where it is: the given one, else the variable's, else the system's.

    Nothing, and no path, where there is none. Raises `UserError` if it cannot be read, or holds what is no
    section.
    """
    path = path or (Path(environment[PATH_VARIABLE]) if environment.get(PATH_VARIABLE) else None)
    if path is None and DEFAULT_PATH.exists():
        path = DEFAULT_PATH
    if path is None:
        return {}, None
    sections = files.read_toml(path)
    for name, section in sections.items():
        if name not in SECTIONS:
            from ovirt_service.decoding import nearest  # loads what checks values, which costs more than this

            kind = f"section [{name}]" if isinstance(section, dict) else f'key "{name}" outside of a section'
            raise UserError(f"{path}: unknown {kind}{nearest(name, SECTIONS)}")
        if not isinstance(section, dict):
            raise UserError(f"{path}: {name}: write it as a section, [{name}]")
    return sections, path


def inventory_directory(sections: Mapping[str, Any]) -> Path:
    """Where the service has its socket: every engine but the default one has a directory of its own.

    Raises `TypeError` for values that `Config` refuses in words.
    """
    named: str | None = sections.get("inventory", {}).get("directory")
    engine: str = sections.get("engine", {}).get("name", DEFAULT_ENGINE)
    if named == "":
        raise TypeError("an empty path")
    if named is not None:
        return Path(named)
    return DEFAULT_DIRECTORY if engine == DEFAULT_ENGINE else DEFAULT_DIRECTORY / engine
