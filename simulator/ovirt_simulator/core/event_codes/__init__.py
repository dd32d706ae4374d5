"""The audit log's event codes: number, severity and text of each, as the engine has them.

Source: the engine's AuditLogType and AuditLogMessages.
"""

from __future__ import annotations

from .access import AccessEvents
from .affinity import AffinityEvents
from .clusters import ClusterEvents
from .event_type import EventType
from .hosts import HostEvents
from .vms import VmEvents

__all__ = ["EventCode", "EventType"]


class EventCode(AccessEvents, AffinityEvents, ClusterEvents, HostEvents, VmEvents):
    """Every type of event, by the engine's name for it."""
