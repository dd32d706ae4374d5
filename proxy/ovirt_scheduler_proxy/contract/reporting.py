"""Which failures of units the administrator reads now: each once in a while, and every refusal of a VM.

What fails, fails for every VM: one entry stands for all. A refusal is about one VM, and its reason is for
the user who starts that one.
"""

from __future__ import annotations

from ovirt_service.digests import digest
from ovirt_service.saying import Said

from ..pool.outcome import Cause, Failure
from .arguments import Question

#: The same is reported again after this many seconds.
_QUIET_SECONDS = 600.0
_DIGEST_SIZE = 16


class Reporting:
    """Remembers what was reported; of refusals no more than `Said` keeps, and of their words a digest."""

    def __init__(self) -> None:
        self._failures = Said(_QUIET_SECONDS)
        # Apart: however many VMs are refused, no failure is reported again for it.
        self._refusals = Said(_QUIET_SECONDS)

    def is_news(self, question: Question, unit: str, failure: Failure) -> bool:
        """Whether this is to be reported now; if so, it counts as reported."""
        if failure.cause is Cause.REFUSED:
            return self._refusals.is_news(
                (unit, digest(question.vm, _DIGEST_SIZE), digest(failure.sentence, _DIGEST_SIZE))
            )
        return self._failures.is_news((unit, question.kind, failure.cause))
