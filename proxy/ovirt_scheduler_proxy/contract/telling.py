"""Which failures of units the administrator reads now: each once in a while, and every refusal of a VM.

What fails, fails for every VM: one entry tells of all. A refusal is about one VM, and its reason is for
whoever starts that one.
"""

from __future__ import annotations

from hashlib import blake2b

from ovirt_service.saying import Said

from ..pool.outcome import Cause, Failure
from .arguments import Question

#: The same is told again after so many seconds.
_QUIET_SECONDS = 600.0


class Telling:
    """Remembers what was told; of refusals no more than `Said` keeps, and of their words a digest."""

    def __init__(self) -> None:
        self._failures = Said(_QUIET_SECONDS)
        # Apart: however many VMs are refused, no failure is told anew for it.
        self._refusals = Said(_QUIET_SECONDS)

    def is_news(self, question: Question, unit: str, failure: Failure) -> bool:
        """Whether this is to be told now; if so, it counts as told."""
        if failure.cause is Cause.REFUSED:
            return self._refusals.is_news((unit, _digest(question.vm), _digest(failure.sentence)))
        return self._failures.is_news((unit, question.kind, failure.cause))


def _digest(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
