"""What is known of the engine now: by one service a machine, which follows it for everyone else.

Its parts are loaded when they are asked for: a policy unit needs the socket's protocol alone.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ovirt_placement.inventory.client import Known, close, known, snapshot, wait_for_change
    from ovirt_placement.inventory.connection import NoService
    from ovirt_placement.inventory.decision import NoSnapshot
    from ovirt_placement.inventory.protocol import Measured

_MODULES = {
    **dict.fromkeys(("Known", "close", "known", "snapshot", "wait_for_change"), "client"),
    "NoSnapshot": "decision",
    "Measured": "protocol",
    "NoService": "connection",
}

__all__ = [
    "Known",
    "Measured",
    "NoService",
    "NoSnapshot",
    "close",
    "known",
    "snapshot",
    "wait_for_change",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
