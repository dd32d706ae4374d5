"""What may be asked of a maintenance, in plans and in runs alike."""

from __future__ import annotations

from enum import StrEnum


class Return(StrEnum):
    """Which VMs are brought back to the hosts that they ran on, once all hosts are up again."""

    NONE = "none"
    #: Those of soft rules that were satisfied before and would be violated otherwise.
    RULED = "ruled"
    ALL = "all"
