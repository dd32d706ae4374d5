"""How the scheduler chooses, and what it makes of the external scheduler's answers, good and bad."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from ovirt_placement.model import SchedulingPolicy
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.scheduler.external import ExternalScheduler, ExternalUnits, Malformed, Unreachable
from ovirt_simulator.scheduler.filters import Request
from ovirt_simulator.scheduler.weights import Record
from tests.builders import APART, Part, cluster, group, host, snapshot, vm
from tests.proxy.running import eventually
from tests.scenarios.stage import START
from tests.simulator.core import engines
from tests.simulator.scheduler.proxy import Proxy, reply

POLICY = SchedulingPolicy(
    filters=("AffinityFilter",), weights={"SoftAffinityWeight": 7}, balance="HaReservationBalance"
)
UNITS = cluster(scheduling_policy=POLICY, scheduling_properties={"affinity_strict": "true"})


def start(proxy: Proxy, *more: Part, **options: Any) -> Engine:
    return engines.engine(UNITS, *map(host, ("h1", "h2", "h3")), vm("v"), *more, proxy=proxy.url, **options)


def placed(engine: Engine) -> str | None:
    engine.vms.start("v")
    return engines.vm(engine, "v").host


def test_the_engine_asks_as_it_is_known_to_ask(proxy: Proxy) -> None:
    placed(start(proxy, vm("peer", "h3"), group("g", APART, "v peer")))
    properties = {"affinity_strict": "true"}
    assert proxy.calls == [
        ("discover",),
        ("runFilters", ["AffinityFilter"], ["h1", "h2"], "v", properties),
        ("runCostFunctions", [["SoftAffinityWeight", 7]], ["h1", "h2"], "v", properties),
    ]


def test_external_filters_narrow_and_a_single_host_is_not_weighed(proxy: Proxy) -> None:
    proxy.run_filters = lambda *_: reply(["h2"])
    assert placed(start(proxy)) == "h2"
    assert [call[0] for call in proxy.calls] == ["discover", "runFilters"]


def test_validation_does_not_ask_and_a_veto_comes_back_empty(proxy: Proxy) -> None:
    proxy.run_filters = lambda *_: reply([])
    engine = start(proxy, vm("m", "h1"))
    for command, name in ((engine.vms.migrate, "m"), (engine.vms.start, "v")):
        refusal = engines.refused(command, name)
        assert (refusal.http_status, refusal.detail) == (400, "[]")
    assert (engines.shown(engine, "v"), engines.codes(engine)) == (["down"], [166, 54])
    proxy.run_filters = lambda names, hosts, *_: reply(hosts)
    engine.vms.migrate("m")
    engine.vms.start("v")


def weights(unit: str, **of_hosts: int) -> list[list[Any]]:
    return [[host_id, weight, unit] for host_id, weight in of_hosts.items()]


ALIKE = weights("SoftAffinityWeight", h1=2, h3=9, h2=3) + weights("SoftAffinityWeight", h1=2)


@pytest.mark.parametrize(
    ("records", "best"),
    [
        pytest.param(weights("SoftAffinityWeight", h1=5, h2=5, h3=4), "h3", id="the lowest"),
        pytest.param(weights("SoftAffinityWeight", h1=1, h2=1), "h3", id="one without a weight"),
        pytest.param(ALIKE, "h2", id="records of a host add up"),
        pytest.param([[host, weight] for host, weight, _ in ALIKE], "h2", id="and of no unit"),
        pytest.param([[*one[:2], "NotOfThePolicy"] for one in ALIKE], "h2", id="and of an unknown one"),
        pytest.param(
            [*ALIKE, *weights("SoftAffinityWeight", h2=4, h3=-9)], "h3", id="and may cancel each other"
        ),
    ],
)
def test_external_weights_choose(proxy: Proxy, records: list[list[Any]], best: str) -> None:
    """As in the engine's RankSelector, whatever the seed."""
    proxy.run_cost_functions = lambda *_: reply(records)
    worst = host("h3", cpu_percent=95, free_mb=3000) if best == "h2" else host("h3")
    parts = (UNITS, host("h1"), host("h2"), worst, vm("v"))
    assert {placed(engines.engine(*parts, proxy=proxy.url, seed=seed)) for seed in range(8)} == {best}


def test_pairs_count_once_under_no_unit(proxy: Proxy) -> None:
    """With the ranks of a triple but factor 1: the engine's own CPU weight, with 2, outvotes them."""
    weights = [["h1", 900], ["h2", 900], ["h3", 0]]
    busy = host("h3", cpu_percent=95, free_mb=3000)
    parts = (UNITS, host("h1"), host("h2"), busy, vm("v"))
    proxy.run_cost_functions = lambda *_: reply(weights)
    assert placed(engines.engine(*parts, proxy=proxy.url)) in {"h1", "h2"}
    proxy.run_cost_functions = lambda *_: reply([[*entry, "SoftAffinityWeight"] for entry in weights])
    assert placed(engines.engine(*parts, proxy=proxy.url)) == "h3"


def test_no_answer_keeps_all_hosts_and_reports_once_a_minute(proxy: Proxy) -> None:
    engine = start(proxy)
    proxy.run_filters = fail
    proxy.run_cost_functions = fail
    assert placed(engine) is not None
    assert engines.codes(engine).count(9920) == 1
    engine.vms.stop("v")
    engine.advance(61)
    placed(engine)
    assert engines.codes(engine).count(9920) == 2


def fail(*_: Any) -> Any:
    raise RuntimeError("an XML-RPC fault")


@pytest.mark.parametrize(
    ("method", "answer", "detail"),
    [
        *(("run_filters", reply(result), "[]") for result in (None, "text", {"h1": 1})),
        ("run_filters", {"result": ["h1"]}, "[Internal Engine Error]"),
        *(("run_filters", reply(["h1"], code), "[Internal Engine Error]") for code in ("0", None)),
        *(
            ("run_cost_functions", reply([["h1", weight, "SoftAffinityWeight"]]), "[Internal Engine Error]")
            for weight in (1.5, None, True, "1")
        ),
    ],
)
def test_an_answer_that_is_none_fails_the_command(
    proxy: Proxy, method: str, answer: Any, detail: str
) -> None:
    """Of filters no list leaves no host; a code or a weight is a whole number."""
    engine, well = start(proxy), getattr(proxy, method)
    setattr(proxy, method, lambda *_: answer)
    refusal = engines.refused(engine.vms.start, "v")
    assert (refusal.http_status, refusal.detail) == (400, detail)
    setattr(proxy, method, well)
    engine.vms.start("v")


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (0, {}),  # without a code they are not heard
        (
            1,
            {
                10500: "Running the external scheduler plugin 'AffinityFilter' failed: 'no snapshot'",
                10501: "Running the external scheduler failed: 'worker died'",
            },
        ),
    ],
)
def test_complaints_reach_the_administrator_and_the_result_counts(
    proxy: Proxy, code: int, said: dict[int, str]
) -> None:
    complaints = {"plugin_errors": {"AffinityFilter": ["no snapshot"]}, "errors": ["worker died"]}
    proxy.run_filters = lambda *_: reply(["h2"], code, **complaints)
    engine = start(proxy)
    assert placed(engine) == "h2"
    events = {event.code: event.description for event in engine.queries.events() if event.code > 10000}
    assert events == said


def enabled(engine: Engine) -> set[str]:
    return {unit.name for unit in engine.queries.state.units.values() if unit.enabled and not unit.internal}


def test_discovery_enables_what_it_names_and_disables_the_rest(proxy: Proxy) -> None:
    proxy.discover = lambda: {"filters": {"AffinityFilter": ["d", ""], "New": ["n", "a=1"]}, "scores": {}}
    engine = start(proxy)
    assert enabled(engine) == {"AffinityFilter", "New"}
    (new,) = [u for u in engine.queries.state.units.values() if u.name == "New"]
    assert (new.description, new.properties) == ("n", {"a": "1"})
    placed(engine)
    assert [call[0] for call in proxy.calls] == ["discover", "runFilters"]


UNREADABLE = {"AffinityFilter": ["d", "no syntax"]}, {"SoftAffinityWeight": ["d", "key=.*"]}


@pytest.mark.parametrize(
    ("answer", "left"),
    [
        *((answer, set()) for answer in (None, [], {"filters": None}, {"filters": {}, "more": {}})),
        ({"filters": {"AffinityFilter": [None, ""]}}, set()),
        (dict(zip(("filters", "scores"), UNREADABLE, strict=True)), {"SoftAffinityWeight"}),
    ],
)
def test_a_bad_discovery_disables_all_but_bad_properties_that_unit_alone(
    proxy: Proxy, answer: Any, left: set[str]
) -> None:
    proxy.discover = lambda: answer
    engine = start(proxy)
    assert (enabled(engine), engines.codes(engine)) == (left, [] if left else [9920])
    assert placed(engine) is not None
    assert "runFilters" not in [call[0] for call in proxy.calls]


def test_unit_ids_are_the_same_in_every_run(proxy: Proxy) -> None:
    first, second = start(proxy), start(proxy, seed=9)
    assert first.queries.state.units == second.queries.state.units


def test_an_absent_proxy_disables_all_units() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/"
        engine = engines.engine(UNITS, host("h1"), vm("v"), proxy=url)
    assert (enabled(engine), engines.codes(engine)) == (set(), [9920])


def test_reads_are_answered_while_the_proxy_thinks(proxy: Proxy) -> None:
    """A plugin reads the engine from another thread than the one that waits for it."""
    seen: list[Any] = []

    def read(names: list[str], hosts: list[str], *_: Any) -> Any:
        reader = threading.Thread(target=lambda: seen.append(engine.queries.now))
        reader.start()
        reader.join(10)
        return reply(hosts)

    proxy.run_filters = read
    engine = start(proxy)
    assert placed(engine) is not None
    assert len(seen) == 1


def test_a_cluster_schedules_one_vm_at_a_time_and_clusters_do_not_wait_for_each_other(proxy: Proxy) -> None:
    go_on = threading.Event()
    order: list[str] = []

    def answer(names: list[str], hosts: list[str], vm_id: str, properties: Any) -> Any:
        order.append(f"asked for {vm_id}")
        if vm_id == "v":
            go_on.wait(20)
            order.append("answered for v")
        return reply(hosts)

    proxy.run_filters = answer
    there = {"cluster": "other"}
    other = (cluster("other", scheduling_policy=POLICY), host("o1", **there), vm("o", **there))
    engine = engines.engine(UNITS, host("h1"), vm("v"), vm("w"), *other, proxy=proxy.url)
    starts = [threading.Thread(target=engine.vms.start, args=(vm_id,)) for vm_id in "vw"]
    starts[0].start()
    eventually(lambda: order == ["asked for v"])
    starts[1].start()
    eventually(lambda: len(engine.queries.jobs()) == 2)
    engine.vms.start("o")
    go_on.set()
    for thread in starts:
        thread.join(20)
    assert order == ["asked for v", "asked for o", "answered for v", "asked for w"]


# -- The client on the wire: what a Java client takes, and what it chokes on.
REPLY = (
    "<?xml version='1.0'?><methodResponse><params><param><value><struct>"
    "<member><name>result_code</name><value><int>0</int></value></member>"
    "<member><name>result</name><value><array><data><value><array><data><value>h1</value>"
    "<value><{kind}>7</{kind}></value></data></array></value></data></array></value></member>"
    "</struct></value></param></params></methodResponse>"
)


@contextmanager
def answering(answer: bytes) -> Iterator[str]:
    """Serve one connection: read the request, send these bytes, hang up."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                request = b""
                while b"</methodCall>" not in request:
                    request += connection.recv(65536)
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
        thread.join(20)


def http(body: str) -> bytes:
    head = f"HTTP/1.1 200 OK\r\nContent-Type: text/xml\r\nContent-Length: {len(body)}\r\n\r\n"
    return (head + body).encode()


def weighed(answer: str) -> list[Record]:
    """The weights of one unit, as the scheduler takes them from this answer."""
    policy = SchedulingPolicy(weights={"W": 1})
    state = snapshot(cluster(scheduling_policy=policy), host("h1"), vm("v"))
    backend = Engine.from_snapshot(state, clock=START)._backend
    with answering(http(answer)) as url:
        units = ExternalUnits(backend, ExternalScheduler(url))
        known = backend.state
        (only,) = known.clusters.values()
        return units.weigh(Request(vm_ids=("v",)), only, tuple(known.hosts.values()))


def test_weights_have_32_bits() -> None:
    """Those of other types are malformed: `test_an_answer_that_is_none_fails_the_command`."""
    for kind in ("int", "i4"):
        assert weighed(REPLY.format(kind=kind)) == [Record(None, "h1", 7)]
    with pytest.raises(Malformed):
        weighed(REPLY.format(kind="i8"))


@pytest.mark.parametrize(
    "answer", [b"", b"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n", http("<html>"), http("no XML at all")]
)
def test_what_is_no_xml_rpc_is_no_answer(answer: bytes) -> None:
    with answering(answer) as url, pytest.raises(Unreachable):
        ExternalScheduler(url).ask("runFilters", ["F"], ["h1"], "v", {})


def test_an_answer_that_takes_too_long_is_no_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        with pytest.raises(Unreachable):
            ExternalScheduler(url, reply_seconds=0.05).ask("discover")
