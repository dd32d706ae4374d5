"""What becomes of notices beyond the limit: they wait, and go as one that counts and carries them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ovirt_enforcer.notifications.kinds import NoticeKind
from ovirt_enforcer.notifications.notice import Notice


def together(held: Sequence[Notice]) -> Notice:
    """One notice for all that waited, the oldest first; what waited alone is itself."""
    if len(held) == 1:
        return held[0]
    counts = Counter(notice.kind.value for notice in held)
    facts = {
        "engine": held[0].facts["engine"],
        "count": str(len(held)),
        "kinds": ", ".join(f"{number} {kind}" for kind, number in counts.most_common()),
    }
    return Notice(NoticeKind.HELD_BACK, facts, carried=tuple(held))
