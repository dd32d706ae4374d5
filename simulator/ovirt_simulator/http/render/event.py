"""Events, and jobs with their steps, as the engine shows them."""

from __future__ import annotations

from ovirt_simulator.core.entities import Event, Job, Reference
from ovirt_simulator.http.links import Links
from ovirt_simulator.http.markup import element, entity, path, text
from ovirt_simulator.http.render.moment import moment


def event(record: Event, links: Links) -> str:
    """Render an event; what it speaks of stands there with its name."""
    return links.entity(
        "event",
        str(record.id),
        text("description", record.description),
        text("code", record.code),
        text("correlation_id", record.correlation_id),
        text("custom_data", record.custom_data),
        text("custom_id", record.custom_id),
        text("flood_rate", record.flood_rate),
        text("index", record.id),
        text("origin", record.origin),
        text("severity", record.severity),
        text("time", moment(record.time)),
        _subject("cluster", "clusters", record.cluster),
        _subject("data_center", "datacenters", record.data_center),
        _subject("host", "hosts", record.host),
        _subject("user", "users", record.user),
        _subject("vm", "vms", record.vm),
    )


def _subject(tag: str, collection: str, subject: Reference | None) -> str:
    if subject is None:
        return ""
    if subject.id is None:
        return element(tag, text("name", subject.name))
    return entity(tag, path(collection, subject.id), subject.id, text("name", subject.name))


def job(record: Job, links: Links) -> str:
    return links.entity(
        "job",
        record.id,
        text("description", record.description),
        text("auto_cleared", True),
        text("end_time", moment(record.ended)),
        text("external", record.external),
        text("last_updated", moment(record.ended or record.started)),
        text("start_time", moment(record.started)),
        text("status", record.status),
    )
