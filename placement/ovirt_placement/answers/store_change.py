"""What was made of the store: begun again, or restored from a backup."""

from __future__ import annotations

from ovirt_placement.answers.document import ChangeDocument
from ovirt_placement.model.record import Record


class StoreContent(Record, frozen=True, omit_defaults=False):
    """What a store holds, of all engines."""

    rows: int


class StoreChangeDocument(ChangeDocument, frozen=True, kw_only=True, tag="store_change"):
    """The store before and afterwards; null where there is none."""

    #: Its URL, without a password.
    store: str
    before: StoreContent | None
    after: StoreContent | None
