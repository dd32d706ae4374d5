"""Why a migration failed or is unknown, as data: what comes next depends on it, whatever words there are."""

from __future__ import annotations

from enum import StrEnum


class Cause(StrEnum):
    """The causes that something depends on; all others have words alone."""

    #: The request surely never left this machine.
    NEVER_ASKED = "never_asked"
    #: The engine refused this target; another may do.
    TARGET_REFUSED = "target_refused"
    #: The engine refused to migrate the VM, whatever the target.
    VM_REFUSED = "vm_refused"
    #: There was no answer, and neither events nor the VM show anything of it.
    NO_TRACE = "no_trace"
    #: A command of the administrator was ended before its time.
    INTERRUPTED = "interrupted"


#: The engine refused: nothing moved.
REFUSALS = (Cause.TARGET_REFUSED, Cause.VM_REFUSED)

_SENTENCES = {
    Cause.NEVER_ASKED: "never reached the engine",
    Cause.TARGET_REFUSED: "refused",
    Cause.VM_REFUSED: "refused: not now",
    Cause.NO_TRACE: "no answer, and no trace of it in the engine",
    Cause.INTERRUPTED: "interrupted",
}


def sentence(cause: Cause | None, error: str | None) -> str | None:
    """Return cause and words as one sentence; None if there is neither."""
    parts = (None if cause is None else _SENTENCES[cause], error)
    return ": ".join(part for part in parts if part) or None
