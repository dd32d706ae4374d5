"""Reads again just what may have changed: some VMs or hosts by their ids, or one cluster with its groups."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.parsing import clusters, hosts
from ovirt_placement.engine.parsing.vms import FoundVm
from ovirt_placement.engine.reading.owners import NO_DETAILS, Detail, followed, with_owners
from ovirt_placement.engine.reading.policies import PolicyReader, with_policies
from ovirt_placement.engine.reading.requests import found_vms, get_entity, whole_answers
from ovirt_placement.model import AffinityGroup, Cluster, Host, Vm

#: From this many on, one search costs the engine less than one request for each.
_WORTH_A_SEARCH = 2
#: These make a URL of 4 kB; all headers together must fit into the 8 kB that the engine's Apache passes on.
LONGEST_SEARCH = 80

_Entity = TypeVar("_Entity", Host, FoundVm)


def reread_vms(
    connection: EngineConnection, ids: Sequence[str], details: Detail = NO_DETAILS
) -> dict[str, Vm]:
    """Read these VMs, with these details, by id; those that are gone are not among them."""
    follow = followed(details)

    def read(content: bytes) -> tuple[FoundVm, ...]:
        return found_vms(connection, content, follow)

    found = _reread(connection, "/vms", ids, read, {"follow": ",".join(follow)} if follow else {})
    with whole_answers(connection):
        return {vm.id: vm for vm in with_owners(connection, found.values())}


def find_vms(connection: EngineConnection, ids: Sequence[str], details: Detail = NO_DETAILS) -> dict[str, Vm]:
    """Look for VMs that may never have been, by one search; as `reread_vms`, but believes it at once."""
    follow = followed(details)
    with whole_answers(connection):
        content = connection.get(
            "/vms", search=_any_of(ids), **({"follow": ",".join(follow)} if follow else {})
        )
        found = found_vms(connection, content, follow)
        return {vm.id: vm for vm in with_owners(connection, found) if vm.id in ids}


def reread_hosts(connection: EngineConnection, ids: Sequence[str]) -> dict[str, Host]:
    """Read these hosts, by id; those that are gone are not among them."""
    return _reread(connection, "/hosts", ids, hosts.read, {})


def reread_cluster(
    connection: EngineConnection, cluster_id: str, policies: PolicyReader
) -> tuple[Cluster, tuple[AffinityGroup, ...]] | None:
    """Read one cluster and its affinity groups; None if it is gone."""
    with whole_answers(connection):
        content = get_entity(connection, "/clusters", cluster_id, follow="affinity_groups")
        if content is None:
            return None
        found = clusters.read(content)
        (cluster,) = with_policies(connection, found, policies)
        return cluster, found.groups


def _any_of(ids: Sequence[str]) -> str:
    return " or ".join(f"id={wanted}" for wanted in ids)


def _reread(
    connection: EngineConnection,
    path: str,
    ids: Sequence[str],
    read: Callable[[bytes], tuple[_Entity, ...]],
    query: Mapping[str, str],
) -> dict[str, _Entity]:
    found: dict[str, _Entity] = {}
    with whole_answers(connection):
        if len(ids) >= _WORTH_A_SEARCH:
            for start in range(0, len(ids), LONGEST_SEARCH):
                search = _any_of(ids[start : start + LONGEST_SEARCH])
                content = connection.get(path, search=search, **query)
                found.update((entity.id, entity) for entity in read(content))
        # A search that the engine cannot parse finds nothing, without an error: what it lacks is asked for.
        for lacked in [wanted for wanted in ids if wanted not in found]:
            if (one := get_entity(connection, path, lacked, **query)) is not None:
                found.update((entity.id, entity) for entity in read(one))
    return found
