"""Writes the specification of the RPMs from its template: version, day, users, and what is bundled.

make_spec.py EPOCH, in the checkout; prints the specification. So these stand in `setup.cfg`, in the locked
requirements and in `packaging/sysusers.d` alone.
"""

import configparser
import re
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from environment import STAGES

HERE = Path(__file__).resolve().parent
PACKAGING = HERE.parent
CHECKOUT = PACKAGING.parent
LOCK = HERE / "requirements-3.12.lock"

#: Which RPM holds what a section of a setup.cfg asks for.
ASKED = {
    "libs": ("setup.cfg", "options", "install_requires"),
    "planner": ("setup.cfg", "options.extras_require", "planner"),
    "postgresql": ("setup.cfg", "options.extras_require", "postgresql"),
    "web": ("setup.cfg", "options.extras_require", "web"),
    "simulator": ("simulator/setup.cfg", "options", "install_requires"),
}


def specification(epoch: int) -> str:
    values = {
        "version": _read("setup.cfg")["metadata"]["version"],
        "date": datetime.fromtimestamp(epoch, UTC).strftime("%a %b %d %Y"),
        "users": _users(),
        **{f"bundled-{package}": lines for package, lines in _bundled()},
    }
    text = (HERE / "ovirt-placement.spec.in").read_text()
    return re.sub(r"@([a-z-]+)@", lambda found: values[found[1]], text)


def _users() -> str:
    lines = (PACKAGING / "sysusers.d/ovirt-placement.conf").read_text().splitlines()
    return "\n".join(line for line in lines if not line.startswith("#"))


def _bundled() -> Iterator[tuple[str, str]]:
    """Give for each RPM what it declares as bundled: all that an earlier one does not hold."""
    versions, asked_by = _locked()
    held: set[str] = set()
    for package, (file, section, key) in ASKED.items():
        asked = [*_read(file)[section][key].splitlines(), *STAGES[package]]
        names = {_name(line) for line in asked if line} - {"ovirt-placement", "ovirt-placement-simulator"}
        # The wheel of psycopg brings libraries of its own; the RPM has it built.
        names |= {"psycopg-c"} if "psycopg" in names else set()
        found = _closure(names, asked_by) & versions.keys() - held
        held |= found
        yield (
            package,
            "\n".join(f"Provides: bundled(python3dist({name})) = {versions[name]}" for name in sorted(found)),
        )


def _locked() -> tuple[dict[str, str], dict[str, set[str]]]:
    """Read the locked requirements: each one's version, and which others ask for it."""
    versions: dict[str, str] = {}
    asked_by: dict[str, set[str]] = {}
    for name, version, via in re.findall(
        r"^([\w-]+)==(\S+)(?: \\\n    --hash\S+)+\n    # via (.*)$", LOCK.read_text(), re.MULTILINE
    ):
        versions[name] = version
        asked_by[name] = set(via.split(", "))
    return versions, asked_by


def _closure(names: set[str], asked_by: dict[str, set[str]]) -> set[str]:
    more = {name for name, by in asked_by.items() if by & names}
    return names if more <= names else _closure(names | more, asked_by)


def _name(requirement: str) -> str:
    (name,) = re.findall(r"^[\w.-]+", requirement)
    return str(name).lower()


def _read(file: str) -> configparser.ConfigParser:
    read = configparser.ConfigParser()
    read.read(CHECKOUT / file)
    return read


if __name__ == "__main__":
    sys.stdout.write(specification(int(sys.argv[1])))
