"""Which pauses were set, or ended."""

from __future__ import annotations

from ovirt_placement.answers.document import ChangeDocument
from ovirt_placement.store.pauses import Pause


class PausesChangeDocument(ChangeDocument, frozen=True, kw_only=True, tag="pauses_change"):
    """The pauses in force before and afterwards; in a dry run one that would be set begins at 0."""

    before: tuple[Pause, ...]
    after: tuple[Pause, ...]
