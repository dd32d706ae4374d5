"""A storage domain, attached to the one data center that it belongs to."""

from __future__ import annotations

from collections.abc import Iterable

from .entities import Record

_GIB = 1 << 30
_SIZE_GIB = 1024


class StorageDomain(Record, frozen=True):
    id: str
    name: str
    #: The id of the data center.
    data_center: str
    master: bool = False
    description: str = ""
    #: active, maintenance, or what is between them.
    status: str = "active"


class Space(Record, frozen=True):
    """How full a storage domain is, in bytes, but of whole GiB."""

    available: int
    used: int
    #: What disks may grow to.
    committed: int


def space_of(sizes: Iterable[int]) -> Space:
    """Give the space of a domain of 1 TiB with disks of these sizes in bytes, or of one that they just fill.

    Hosts report what is free, cut to whole GiB, and the rest is used; what is committed is rounded. Source:
    the engine's StorageDomainDynamic and its view `storage_domains_image_sizes`.
    """
    total = sum(sizes)
    used = -(-total // _GIB)
    committed = (total + _GIB // 2) // _GIB
    return Space(available=max(_SIZE_GIB - used, 0) * _GIB, used=used * _GIB, committed=committed * _GIB)
