"""What the engine gets from the four methods, through real HTTP and real workers."""

from __future__ import annotations

import urllib.request
import xmlrpc.client
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from ovirt_scheduler_proxy.contract import merging
from ovirt_scheduler_proxy.pool.outcome import Outcome

from ..running import RunningProxy, running, write_plugins

HOSTS = ["h1", "h2", "h3", "h4"]
VM = b"11111111-2222-3333-4444-555555555555"

PLUGINS = '''
class KeepOdd:
    """A class's own text is not its description."""
    properties_validation = "odd_limit=[0-9]*;odd_mode=a|b"
    def do_filter(self, hosts, vm, args):
        """Behält ungerade Hosts — 保持"""
        return [host for host in reversed(hosts) if host[-1] in "13"] * 2 + ["stranger"]

class KeepFirst:
    def do_filter(self, hosts, vm, args):
        print("thinking aloud")
        return {hosts[0]}

class KeepNone:
    def do_filter(self, hosts, vm, args):
        return []

class Silent:
    def do_filter(self, hosts, vm, args):
        pass
    def do_score(self, hosts, vm, args):
        pass
    def do_balance(self, hosts, args):
        pass

class Raising:
    def do_filter(self, hosts, vm, args):
        raise ValueError("a & b <c>")
    def do_score(self, hosts, vm, args):
        raise ValueError("no")
    def do_balance(self, hosts, args):
        raise ValueError("no")

class Strict(Raising):
    pass

class Unwelcome(Exception):
    refuses = True

class Refusing:
    def do_filter(self, hosts, vm, args):
        raise Unwelcome(args.get("because", "nobody may run it"))
    def do_score(self, hosts, vm, args):
        raise Unwelcome("nobody may run it")

class Weigh:
    def do_score(self, hosts, vm, args):
        return [("h2", 7.6), ("h1", 2**40), ("stranger", 9), ("h4", -3)]

class WeighSome:
    def do_score(self, hosts, vm, args):
        return [("h2", 3), ("h1", 1)]

class WeighBadly:
    def do_score(self, hosts, vm, args):
        return [("h1", {"nan": float("nan"), "text": "5", "none": None, "bool": True}[args["how"]])]

class Move:
    def do_balance(self, hosts, args):
        """moves"""
        return ("11111111-2222-3333-4444-555555555555", ["stranger", "h3", "h1"])

class MoveNowhere:
    def do_balance(self, hosts, args):
        return ("11111111-2222-3333-4444-555555555555", ["stranger"])

class MoveOddly:
    def do_balance(self, hosts, args):
        return ("vm-1", hosts)

class MoveByForce:
    """Writes past all checks, into its worker's connection to the proxy."""
    def do_balance(self, hosts, args):
        import os, socket, stat, struct
        body = b'["vm-1", ["h1"]]'
        for number in range(3, 30):
            try:
                if stat.S_ISSOCK(os.fstat(number).st_mode):
                    os.write(number, struct.pack(">III", 0, 1, len(body)) + b"1" + body)
            except OSError:
                pass
        return ("", [])

class Empty:
    def do_filter(self, hosts, vm, args):
        return hosts if args == {"limit": "", "other": "5"} else []

class Echo:
    def do_filter(self, hosts, vm, args):
        return hosts if (vm, args) == ("vm", {"key": "wert ä"}) else []
'''

CONFIG = """
[calls]
deadline_seconds = 5
[units.Strict]
on_failure = "reject"
[units.Absent]
on_failure = "reject"
"""


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningProxy]:
    folder = write_plugins(tmp_path_factory.mktemp("contract") / "plugins", units=PLUGINS)
    with running(folder, config=CONFIG) as started:
        yield started


def test_discovery_has_exactly_the_keys_that_the_engine_knows(proxy: RunningProxy) -> None:
    with proxy.client() as client:
        found = client.discover()
    assert isinstance(found, dict)
    assert set(found) == {"filters", "scores", "balance"}
    assert found["filters"]["KeepOdd"] == ["Behält ungerade Hosts — 保持", "odd_limit=[0-9]*;odd_mode=a|b"]
    assert found["filters"]["KeepFirst"] == ["", ""]
    assert found["balance"]["Move"] == ["moves", ""]
    assert "Move" not in found["filters"]


def test_hosts_come_back_in_the_order_asked_and_once(proxy: RunningProxy) -> None:
    answer = proxy.filters(["KeepOdd"], ["h3", "h2", "h1", "h3"])
    assert answer == {"result_code": 0, "result": ["h3", "h1"], "plugin_errors": {}, "errors": []}


def test_filters_intersect_and_empty_stays_empty(proxy: RunningProxy) -> None:
    assert proxy.filters(["KeepOdd", "KeepFirst"], HOSTS)["result"] == ["h1"]
    assert proxy.filters(["KeepOdd", "KeepNone", "KeepFirst"], HOSTS)["result"] == []
    assert proxy.filters([], HOSTS)["result"] == HOSTS


def test_arguments_reach_the_unit(proxy: RunningProxy) -> None:
    assert proxy.filters(["Echo"], HOSTS, {"key": "wert ä"})["result"] == HOSTS


def test_no_hosts_need_no_unit(proxy: RunningProxy) -> None:
    assert proxy.filters(["KeepFirst"], [])["result"] == []
    assert proxy.scores(["Weigh"], [])["result"] == []
    assert proxy.balance("Move", [])["result"] == ["", []]


@pytest.mark.parametrize("unit", ["Raising", "Silent", "NoSuchUnit"])
def test_a_failing_filter_accepts_and_is_reported(proxy: RunningProxy, unit: str) -> None:
    answer = proxy.filters([unit, "KeepOdd"], HOSTS)
    assert answer["result"] == ["h1", "h3"]
    assert answer["result_code"] == 1
    (sentence,) = answer["plugin_errors"][unit]
    assert "filtered no host" in sentence
    assert "Traceback" not in sentence


def test_a_failure_is_told_once_in_a_while_but_always_counts(proxy: RunningProxy) -> None:
    first = proxy.filters(["DampedUnit"], HOSTS)
    second = proxy.filters(["DampedUnit"], HOSTS)
    assert (list(first["plugin_errors"]), second["plugin_errors"]) == (["DampedUnit"], {})
    assert first["result_code"] == second["result_code"] == 1
    assert list(proxy.scores(["DampedUnit"], HOSTS)["plugin_errors"]) == ["DampedUnit"]


def refusal(client: xmlrpc.client.ServerProxy, vm: str, because: str, *more: str) -> dict[str, list[str]]:
    answer = client.runFilters(["Refusing", *more], HOSTS, vm, {"because": because})
    assert isinstance(answer, dict)
    assert (answer["result"], answer["result_code"]) == ([], 1)
    told = answer["plugin_errors"]
    assert isinstance(told, dict)
    return told


def test_each_refusal_is_told_once_for_each_vm_and_reason(proxy: RunningProxy) -> None:
    with proxy.client() as client:
        told = [refusal(client, f"refused-{number}", "no licence", "DampedLater") for number in range(300)]
        assert [list(one) for one in told] == [["Refusing", "DampedLater"], *[["Refusing"]] * 299]
        assert all("refuses the VM: no licence" in one["Refusing"][0] for one in told)
        assert refusal(client, "refused-7", "no licence") == {}
        assert list(refusal(client, "refused-7", "no room")) == ["Refusing"]
        assert refusal(client, "refused-7", "no licence") == {}


def test_what_was_told_of_refusals_takes_little_memory(tmp_path: Path) -> None:
    folder = write_plugins(tmp_path / "plugins", units=PLUGINS)
    with running(folder, config='[log]\nlevel = "error"\n') as proxy, proxy.client() as client:
        process = psutil.Process(proxy.process.pid)
        long = "because " * 5000
        for number in range(100):
            assert refusal(client, f"first-{number}", long)
        before = process.memory_info().rss
        for number in range(1000):
            assert refusal(client, f"vm-{number}", long)
        # Kept in full, they would take 40 MB.
        assert process.memory_info().rss - before < 10 << 20


@pytest.mark.parametrize("unit", ["Strict", "Absent"])
def test_on_failure_can_reject(proxy: RunningProxy, unit: str) -> None:
    assert proxy.filters([unit, "KeepOdd"], HOSTS)["result"] == []


def test_a_filter_can_refuse_with_a_reason(proxy: RunningProxy) -> None:
    answer = proxy.filters(["Refusing", "KeepOdd"], HOSTS)
    assert (answer["result"], answer["result_code"]) == ([], 1)
    assert answer["plugin_errors"] == {"Refusing": ["refuses the VM: nobody may run it; no host is accepted"]}
    weighed = proxy.scores(["Refusing", "WeighSome"], HOSTS)
    assert {unit for _, _, unit in weighed["result"]} == {"WeighSome"}


def test_weights_are_whole_raw_and_of_every_host(proxy: RunningProxy) -> None:
    answer = proxy.scores(["Weigh", "WeighSome"], HOSTS)
    assert answer["result"] == [
        ["h1", 2**31 - 1, "Weigh"],
        ["h2", 8, "Weigh"],
        ["h3", 2**31 - 1, "Weigh"],
        ["h4", -3, "Weigh"],
        ["h1", 1, "WeighSome"],
        ["h2", 3, "WeighSome"],
        ["h3", 3, "WeighSome"],
        ["h4", 3, "WeighSome"],
    ]
    assert answer["result_code"] == 0


@pytest.mark.parametrize("how", ["nan", "text", "none", "bool"])
def test_a_bad_weight_is_the_units_failure(proxy: RunningProxy, how: str) -> None:
    answer = proxy.scores(["WeighBadly", "WeighSome"], ["h1"], {"how": how})
    assert answer["result"] == [["h1", 1, "WeighSome"]]
    assert answer["result_code"] == 1


def test_failing_units_contribute_no_weights(proxy: RunningProxy) -> None:
    answer = proxy.scores(["Raising", "Silent", "NoSuchScore"], HOSTS)
    assert answer["result"] == []
    assert set(answer["plugin_errors"]) == {"Raising", "Silent", "NoSuchScore"}


def test_balance_always_has_two_fields(proxy: RunningProxy) -> None:
    assert proxy.balance("Move", HOSTS)["result"] == ["11111111-2222-3333-4444-555555555555", ["h1", "h3"]]
    for unit in ("MoveNowhere", "Silent", "Raising", "NoSuchBalance"):
        assert proxy.balance(unit, HOSTS)["result"] == ["", []]
    assert proxy.balance("Silent", HOSTS)["result_code"] == 0
    assert proxy.balance("Raising", HOSTS)["result_code"] == 1


@pytest.mark.parametrize("unit", ["MoveOddly", "MoveByForce"])
def test_a_vm_that_the_engine_cannot_read_never_reaches_it(proxy: RunningProxy, unit: str) -> None:
    answer = proxy.balance(unit, HOSTS)
    assert answer["result"] == ["", []]
    assert answer["result_code"] == 1
    assert "nothing is balanced" in answer["plugin_errors"][unit][0]


@pytest.mark.parametrize(
    "body",
    [b'["vm", ["h1"]]', b'["", ["h1"]]', b'["%s", ["h2"]]' % VM, b'["%s", []]' % VM, b"[]", b"\xff", b"5"],
)
def test_what_a_worker_says_is_checked_once_more(body: bytes) -> None:
    assert merging.checked(Outcome(body), ["h1"], None).failure is not None
    assert merging.checked(Outcome(b'["%s", ["h1"]]' % VM), ["h1"], None).failure is None


def test_a_property_without_a_value_is_empty(proxy: RunningProxy) -> None:
    body = xmlrpc.client.dumps(
        (["Empty"], HOSTS, "vm", {"limit": None, "other": "5"}), "runFilters", allow_none=True
    )
    apache = body.replace("<nil/>", "<ex:nil/>").replace(
        "<methodCall>", '<methodCall xmlns:ex="http://ws.apache.org/xmlrpc/namespaces/extensions">'
    )
    request = urllib.request.Request(proxy.url, apache.encode(), {"Content-Type": "text/xml"})
    with urllib.request.urlopen(request) as response:
        (answer,), _ = xmlrpc.client.loads(response.read())
    assert answer == {"result_code": 0, "result": HOSTS, "plugin_errors": {}, "errors": []}


def test_many_hosts(proxy: RunningProxy) -> None:
    hosts = [f"{number:08d}-aaaa-bbbb-cccc-{number:012d}" for number in range(5000)]
    assert proxy.filters(["KeepOdd"], hosts)["result"] == [host for host in hosts if host[-1] in "13"]
    weights = proxy.scores(["WeighSome"], [*hosts, "h1", "h2"])["result"]
    assert len(weights) == 5002
    assert weights[0] == [hosts[0], 3, "WeighSome"]


@pytest.mark.parametrize(
    ("method", "parameters", "said"),
    [
        ("noSuchMethod", [], "there is no method"),
        ("discover", [1], "takes 0 arguments"),
        ("runFilters", [["A"], ["h"], "vm"], "takes 4 arguments, not 3"),
        ("runFilters", ["A", ["h"], "vm", {}], "filters must be a list of texts, not a text"),
        ("runFilters", [["A"], [1], "vm", {}], "hosts must be a list of texts, but holds an integer"),
        ("runFilters", [["A"], ["h"], None, {}], "vm must be a text, not nothing"),
        ("runFilters", [["A"], ["h"], "vm", {"a": 1}], "property .a. must be a text, not an integer"),
        ("runCostFunctions", [["A"], ["h"], "vm", {}], "list of pairs"),
        ("runCostFunctions", [[["A", "1"]], ["h"], "vm", {}], "the factor of .A. must be an integer"),
        ("runLoadBalancing", [["A"], ["h"], {}], "balance must be a text, not a list"),
    ],
)
def test_wrong_calls_get_a_clear_fault(
    proxy: RunningProxy, method: str, parameters: list[object], said: str
) -> None:
    with proxy.client() as client, pytest.raises(xmlrpc.client.Fault, match=said):
        getattr(client, method)(*parameters)


def test_no_properties_may_come_as_empty_text(proxy: RunningProxy) -> None:
    with proxy.client() as client:
        answer = client.runFilters(["KeepOdd"], HOSTS, "vm", "")
    assert isinstance(answer, dict)
    assert answer["result"] == ["h1", "h3"]
