"""The page of metrics is served where the configuration says, or a sentence says why it cannot be."""

from __future__ import annotations

import re
import socket
import urllib.request

import pytest
from prometheus_client import Counter
from prometheus_client.parser import text_string_to_metric_families

from ovirt_service import metrics
from ovirt_service.errors import UserError


def test_what_is_counted_can_be_read_alongside_what_the_process_takes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    registry = metrics.new_registry("part")
    Counter("things", "Things", registry=registry).inc(3)
    metrics.serve(registry, "127.0.0.1:0", "[part] metrics")
    found = re.search(r"metrics at (\S+)", caplog.text)
    assert found is not None
    with urllib.request.urlopen(found[1]) as response:
        page = response.read().decode()
    samples = {
        sample.name: sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
    }
    assert samples["things_total"] == 3
    assert samples["part_build_info"] == 1
    assert not any(name.endswith("_created") for name in samples)
    assert samples["process_resident_memory_bytes"] > 0


def test_one_of_several_engines_is_a_label_of_all() -> None:
    registry = metrics.new_registry("part", "red")
    Counter("things", "Things", ["kind"], registry=registry).labels("small").inc()
    found = [sample for family in registry.collect() for sample in family.samples]
    assert {sample.labels.get("engine") for sample in found} == {"red"}
    assert registry.get_sample_value("things_total", {"engine": "red", "kind": "small"}) == 1


def test_nowhere_is_the_default() -> None:
    metrics.serve(metrics.new_registry("part"), "", "[part] metrics")


def test_an_address_that_is_taken_or_none_is_reported() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(UserError, match=rf"^\[part\] metrics '{address}': Address already in use$"):
            metrics.serve(metrics.new_registry("part"), address, "[part] metrics")
    with pytest.raises(UserError, match=r"^\[part\] metrics '9090' is not HOST:PORT"):
        metrics.serve(metrics.new_registry("part"), "9090", "[part] metrics")
