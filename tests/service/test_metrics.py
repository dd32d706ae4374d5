"""The page of metrics is served where the configuration says, or a sentence says why it cannot be."""

import http.client
import socket
import threading
import urllib.request
from collections.abc import Callable
from contextlib import ExitStack
from urllib.parse import urlsplit

import pytest
from prometheus_client import Counter

from ovirt_service import metrics
from ovirt_service.errors import UserError
from tests.pages import page_named_in, samples


@pytest.fixture
def serve(caplog: pytest.LogCaptureFixture) -> Callable[[metrics.Instruments], str]:
    """Serves these, and gives the address that is logged."""

    def serve(instruments: metrics.Instruments) -> str:
        caplog.set_level("INFO")
        metrics.serve(instruments.registry, "127.0.0.1:0", "[part] metrics")
        return page_named_in(caplog.text)

    return serve


def test_what_is_counted_can_be_read_alongside_what_the_process_takes(
    serve: Callable[[metrics.Instruments], str],
) -> None:
    instruments = metrics.Instruments("part")
    Counter("things", "Things", registry=instruments.registry).inc(3)
    found = {name: value for (name, *_), value in samples(serve(instruments)).items()}
    assert (found["things_total"], found["part_build_info"]) == (3, 1)
    assert not any(name.endswith("_created") for name in found)
    assert found["process_resident_memory_bytes"] > 0


def test_who_connects_and_says_nothing_takes_no_thread_and_holds_up_nobody(
    serve: Callable[[metrics.Instruments], str],
) -> None:
    url = urlsplit(serve(metrics.Instruments("part")))
    at, before = (url.hostname or "", url.port or 0), threading.active_count()
    with ExitStack() as all_open:
        for number in range(100):
            silent = all_open.enter_context(socket.create_connection(at))
            if number % 2:
                silent.sendall(b"GET /metrics HTTP/1.1\r\nHost: ")
        with urllib.request.urlopen(url.geturl()) as response:
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
