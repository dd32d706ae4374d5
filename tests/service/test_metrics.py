"""The page of metrics is served where the configuration says, or a sentence says why it cannot be."""

import http.client
import re
import socket
import threading
import urllib.request
from contextlib import ExitStack

import pytest
from prometheus_client import Counter
from prometheus_client.parser import text_string_to_metric_families

from ovirt_service import metrics
from ovirt_service.errors import UserError


def test_what_is_counted_can_be_read_alongside_what_the_process_takes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    registry = metrics.Instruments("part").registry
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


def test_who_connects_and_says_nothing_takes_no_thread_and_holds_up_nobody(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    metrics.serve(metrics.Instruments("part").registry, "127.0.0.1:0", "[part] metrics")
    found = re.search(r"metrics at http://127.0.0.1:(\d+)", caplog.text)
    assert found is not None
    at, before = ("127.0.0.1", int(found[1])), threading.active_count()
    with ExitStack() as all_open:
        for number in range(100):
            silent = all_open.enter_context(socket.create_connection(at))
            if number % 2:
                silent.sendall(b"GET /metrics HTTP/1.1\r\nHost: ")
        with urllib.request.urlopen(f"http://127.0.0.1:{at[1]}/metrics") as response:
            assert b"part_build_info" in response.read()
        assert threading.active_count() == before
    for path, status in (("/other", 404), ("/metrics?name[]=part_build_info", 200)):
        connection = http.client.HTTPConnection(*at)
        connection.request("GET", path)
        assert connection.getresponse().status == status
        connection.close()


def test_one_of_several_engines_is_a_label_of_all() -> None:
    registry = metrics.Instruments("part", "red").registry
    Counter("things", "Things", ["kind"], registry=registry).labels("small").inc()
    found = [sample for family in registry.collect() for sample in family.samples]
    assert {sample.labels.get("engine") for sample in found} == {"red"}
    assert registry.get_sample_value("things_total", {"engine": "red", "kind": "small"}) == 1


def test_an_address_that_is_taken_or_none_is_reported() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(UserError, match=rf"^\[part\] metrics '{address}': Address already in use$"):
            metrics.serve(metrics.Instruments("part").registry, address, "[part] metrics")
    with pytest.raises(UserError, match=r"^\[part\] metrics '9090' is not HOST:PORT"):
        metrics.serve(metrics.Instruments("part").registry, "9090", "[part] metrics")
