"""Data centers are added, changed and removed."""

from __future__ import annotations

import pytest
from ovirtsdk4 import Connection, Error, NotFoundError, types

from ovirt_simulator.core.engine import Engine
from tests.simulator.core.engines import codes


def test_a_data_center_is_added_changed_and_removed(sdk: Connection, engine: Engine) -> None:
    system = sdk.system_service()
    centers = system.data_centers_service()
    added = centers.add(types.DataCenter(name="new", description="first", local=False))
    assert (added.status, added.local) == (types.DataCenterStatus.UNINITIALIZED, False)
    service = centers.data_center_service(added.id)
    assert service.storage_domains_service().list() == service.clusters_service().list() == []
    cluster = system.clusters_service().add(types.Cluster(name="c", data_center=types.DataCenter(name="new")))
    changed = service.update(types.DataCenter(description="second", comment="x"))
    assert (changed.name, changed.description, changed.comment) == ("new", "second", "x")
    with pytest.raises(Error, match="quota mode audit") as caught:
        service.update(types.DataCenter(quota_mode=types.QuotaModeType.AUDIT))
    assert caught.value.code == 501
    service.remove()
    assert system.clusters_service().cluster_service(cluster.id).get().data_center is None
    with pytest.raises(NotFoundError):
        service.get()
    assert codes(engine) == [950, 809, 952, 954]


def test_what_cannot_be_done_with_data_centers_is_refused(sdk: Connection) -> None:
    centers = sdk.system_service().data_centers_service()
    for wrong, words in (
        (types.DataCenter(local=False), r"\[name\] required"),
        (types.DataCenter(name="x"), r"\[local\] required"),
        (types.DataCenter(name="DC", local=True), "The Data Center name is already in use"),
    ):
        with pytest.raises(Error, match=words):
            centers.add(wrong)
    with pytest.raises(Error, match="Cannot remove an active Data Center") as caught:
        centers.data_center_service("dc1").remove()
    assert caught.value.code == 409
