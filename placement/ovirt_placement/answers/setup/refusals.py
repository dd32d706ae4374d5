"""What the engine lacks or would refuse, said before anything is sent."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping

from ovirt_placement.answers import policy_units as ours
from ovirt_placement.answers.setup.choice import Seen
from ovirt_placement.engine.parsing.policies import PolicyUnit
from ovirt_placement.engine.writing.policies import PolicyContent
from ovirt_placement.rules.rule import UnitKind
from ovirt_service.errors import UserError

#: What an administrator hardly notices.
_LONGEST_SECONDS = 2.0
#: Values and expressions together that take no time worth a process.
_SHORT = 12

_PROGRAM = """
import re, sys
regex, value = (text.encode("utf-8", "surrogateescape").decode() for text in sys.argv[1:])
sys.exit(0 if re.fullmatch(regex, value) else 1)
"""


def matches(regex: str, value: str) -> bool | None:
    """Whether the whole value matches; None where that takes too long to know.

    Raises `re.error` for an expression that is none of Python's.
    """
    compiled = re.compile(regex)
    if len(value) <= _SHORT:
        return compiled.fullmatch(value) is not None
    try:
        done = subprocess.run(  # noqa: S603 - our own interpreter; the texts are arguments, and no program
            [sys.executable, "-I", "-c", _PROGRAM, regex, value], timeout=_LONGEST_SECONDS, check=False
        )
    except (subprocess.TimeoutExpired, OSError, ValueError):
        return None
    return done.returncode == 0


def check_unlocked(policy: PolicyContent) -> None:
    if policy.head.locked:
        raise UserError(
            f"the policy {policy.head.name} is the engine's own and locked: choose another name by --policy"
        )


def check_unspoilt(units: Mapping[str, PolicyUnit], policy: PolicyContent) -> None:
    for unit, times in Counter(policy.units).items():
        if times > 1:
            raise UserError(
                f"the engine has {units[unit].name if unit in units else unit} twice in the policy"
                f" {policy.head.name}"
                " and refuses every change of it: restart ovirt-engine, which forgets the second"
            )


def usable_unit(seen: Seen, kind: UnitKind, name: str, *, internal: bool = False) -> str:
    """Find the id of a unit that the policy must have."""
    found = ours.unit_id(seen.units, kind, name, internal=internal)
    if found is None:
        raise UserError(
            f"the engine has no {kind.replace('_', ' ')} unit {name}: it asks the proxy for its units"
            " only when it starts; `ovirt-placement doctor` says what to do"
        )
    if not seen.units[found].enabled:
        raise UserError(
            f"the engine has disabled {name}: the proxy did not offer it when the engine started;"
            " `ovirt-placement doctor` says what to do"
        )
    return found


def check_value(name: str, value: str, regex: str, where: str) -> None:
    try:
        fits = matches(regex, value)
    except re.error:
        return  # an expression of Java's that is none of Python's: the engine will judge
    if fits is False:
        raise UserError(
            f"{where}: {name}={value} does not match {regex}: give a value by --property {name}=..."
        )
