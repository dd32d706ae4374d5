"""A storage domain, attached to the one data center that it belongs to."""

from __future__ import annotations

from .entities import Record


class StorageDomain(Record, frozen=True):
    id: str
    name: str
    #: The id of the data center.
    data_center: str
    master: bool = False
    description: str = ""
    #: active, maintenance, or what is between them.
    status: str = "active"
