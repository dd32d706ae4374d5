"""The compatibility versions that clusters and data centers can have: the engine's SupportedClusterLevels."""

from __future__ import annotations

from .refusals import bad_parameters
from .rejections import Rejected

LEVELS = ("4.2", "4.3", "4.4", "4.5", "4.6", "4.7", "4.8")
#: Of a data center that is added without one.
LATEST = LEVELS[-1]
#: Of what the state file says nothing of.
USUAL = "4.7"


def ordered(version: str) -> tuple[int, ...]:
    """Give a version in a form that sorts as versions do."""
    return tuple(int(part) for part in version.split("."))


def unsupported(action: str, kind: str) -> Rejected:
    return bad_parameters(
        "ACTION_TYPE_FAILED_GIVEN_VERSION_NOT_SUPPORTED",
        f"Cannot {action} {kind}. Selected Compatibility Version is not supported.",
    )
