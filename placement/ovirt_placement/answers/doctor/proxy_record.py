"""What can be wrong with the proxy's record of decisions, by which questions about the past are answered."""

from __future__ import annotations

import os
from collections.abc import Iterator

from ovirt_placement.answers.decisions.record import exists, record_of, records
from ovirt_placement.answers.doctor.finding import Finding
from ovirt_placement.answers.status.proxy import configuration_of

#: A decision about 500 hosts takes up to 100 KB.
_LEAST_FREE = 1 << 20


def examine_record(engine: str) -> Iterator[Finding]:
    """Look whether decisions are recorded, and have room. Raises `NoRecord` if the record cannot be read."""
    if not records(engine):
        return
    record = record_of(engine)
    if not exists(record):
        yield Finding(
            kind="no_record",
            what=f"the proxy's record of decisions is not there: {record}: nobody can say later why a VM did"
            " not start",
            remedy="restart the proxy, which makes it; if it cannot, its log says why (may its user write"
            f" to {record.parent}?)",
        )
        return
    place = os.statvfs(record.parent)
    if place.f_bavail * place.f_frsize < _LEAST_FREE:
        yield Finding(
            kind="record_disk_full",
            what=f"the disk is full on which the proxy records its decisions: {record}",
            remedy="make room; until then decisions are made, and not recorded",
        )


def unrecorded(engine: str) -> Iterator[str]:
    """Say so where the proxy of this machine is not to record."""
    if not records(engine):
        yield (
            "the proxy records no decisions, so that nobody can say later why a VM did not start"
            f" (record in section [decisions] of {configuration_of(engine)})"
        )
