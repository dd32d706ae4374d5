"""Clusters that are added, changed and removed."""

from __future__ import annotations

import pytest
from ovirtsdk4 import Connection, Error, services, types

from ovirt_simulator.core.engine import Engine


@pytest.fixture
def clusters(sdk: Connection) -> services.ClustersService:
    return sdk.system_service().clusters_service()


def test_what_is_named_changes_and_the_rest_is_kept(
    clusters: services.ClustersService, engine: Engine
) -> None:
    cluster = clusters.cluster_service("cluster1")
    before = cluster.get()
    cluster.update(
        types.Cluster(
            comment="soon",
            threads_as_cores=False,
            memory_policy=types.MemoryPolicy(over_commit=types.MemoryOverCommit(percent=200)),
            version=types.Version(major=4, minor=7),
            fencing_policy=types.FencingPolicy(enabled=False),
            migration=types.MigrationOptions(auto_converge=types.InheritableBoolean.TRUE),
            required_rng_sources=[types.RngSource.HWRNG, types.RngSource.URANDOM],
        )
    )
    after = cluster.get()
    assert (after.name, after.comment, after.threads_as_cores) == ("Default", "soon", False)
    assert after.memory_policy.over_commit.percent == 200
    assert after.memory_policy.transparent_huge_pages.enabled is True
    assert (after.version.major, after.version.minor) == (4, 7)
    assert (after.fencing_policy.enabled, after.fencing_policy.skip_if_sd_active.enabled) == (False, False)
    assert (after.migration.auto_converge, after.migration.policy.id) == (
        types.InheritableBoolean.TRUE,
        before.migration.policy.id,
    )
    assert after.required_rng_sources == [types.RngSource.HWRNG, types.RngSource.URANDOM]
    seen = engine.snapshot().cluster_by_id["cluster1"]
    assert (seen.memory_overcommit_percent, seen.count_threads_as_cores) == (200, False)
    assert engine.queries.events()[0].code == 811


def test_a_cluster_in_which_something_is_stays(clusters: services.ClustersService, engine: Engine) -> None:
    with pytest.raises(Error, match=r"one or more Hosts, .*One or more VMs are still assigned") as caught:
        clusters.cluster_service("cluster2").remove()
    assert caught.value.code == 409
    added = clusters.add(types.Cluster(name="new", data_center=types.DataCenter(name="DC"), comment="mine"))
    assert clusters.cluster_service(added.id).get().comment == "mine"
    clusters.cluster_service(added.id).remove()
    assert [cluster.name for cluster in clusters.list()] == ["Default", "Second <&>"]
    assert engine.queries.events()[0].description == "Host cluster new was removed by admin@internal-authz"
