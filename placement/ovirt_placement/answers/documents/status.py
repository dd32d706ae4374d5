"""The answer of `ovirt-placement status` as data."""

from __future__ import annotations

from ovirt_placement.answers.document import Document
from ovirt_placement.answers.status import ClusterStatus, Keys, StateSource


class StatusDocument(Document, frozen=True, kw_only=True, tag="status"):
    """What is known of each cluster, where from, and how fresh it is."""

    source: StateSource
    placement_keys: Keys
    clusters: tuple[ClusterStatus, ...]
    #: What is wrong in the configuration of other commands.
    mistakes: tuple[str, ...]
