"""Every address of the API below /ovirt-engine/api, and the resource that answers each of its methods."""

from __future__ import annotations

from functools import cache

from werkzeug.routing import Map, Rule

from ovirt_simulator.http.resources import empty
from ovirt_simulator.http.routes import (
    clusters,
    hosts,
    infrastructure,
    people,
    records,
    scheduling,
    storage,
    vms,
)
from ovirt_simulator.http.routes.table import Resource

_AREAS = (infrastructure, clusters, hosts, vms, scheduling, storage, people, records)


@cache
def routes() -> Map:
    """Give the map from address and method to resource; all servers share it."""
    resources = {("GET", pattern): Resource(answer, root) for pattern, root, answer in empty.collections()}
    for area in _AREAS:
        resources |= {(method, pattern): resource for method, pattern, resource in area.TABLE.resources()}
    rules = [
        Rule(pattern or "/", endpoint=resource, methods=[method])
        for (method, pattern), resource in resources.items()
    ]
    return Map(rules, strict_slashes=False, merge_slashes=False)
