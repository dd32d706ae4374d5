"""What the engine gets from the four methods, through real HTTP and real workers."""

import urllib.request
import xmlrpc.client

import pytest

from ..running import RunningProxy, well
from .units import HOSTS, VM


def test_discovery_has_exactly_the_keys_that_the_engine_knows(proxy: RunningProxy) -> None:
    found = proxy.discover()
    assert set(found) == {"filters", "scores", "balance"}
    assert found["filters"]["KeepOdd"] == ["Behält ungerade Hosts — 保持", "odd_limit=[0-9]*;odd_mode=a|b"]
    assert found["filters"]["KeepFirst"] == ["", ""]
    assert found["filters"]["Parametrized"] == ["keeps all", ""], "the engine takes no such key"
    assert found["balance"]["Move"] == ["moves", ""]
    assert "Move" not in found["filters"]


@pytest.mark.parametrize(
    ("units", "hosts", "left"),
    [
        pytest.param(["KeepOdd"], ["h3", "h2", "h1", "h3"], ["h3", "h1"], id="in the order asked, and once"),
        (["KeepOdd", "KeepFirst"], HOSTS, ["h1"]),
        (["KeepOdd", "KeepNone", "KeepFirst"], HOSTS, []),
        ([], HOSTS, HOSTS),
        (["Echo"], HOSTS, HOSTS),
    ],
)
def test_filters_intersect_and_get_their_arguments(
    proxy: RunningProxy, units: list[str], hosts: list[str], left: list[str]
) -> None:
    assert proxy.filters(units, hosts, {"key": "wert ä"}) == well(left)


def test_no_hosts_need_no_unit(proxy: RunningProxy) -> None:
    assert proxy.filters(["KeepFirst"], [])["result"] == []
    assert proxy.scores(["Weigh"], [])["result"] == []
    assert proxy.balance("Move", [])["result"] == ["", []]


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


def test_balance_always_has_two_fields(proxy: RunningProxy) -> None:
    assert proxy.balance("Move", HOSTS)["result"] == [VM, ["h1", "h3"]]
    for unit in ("MoveNowhere", "SilentBalance", "RaisingBalance", "NoSuchBalance"):
        assert proxy.balance(unit, HOSTS)["result"] == ["", []]
    assert proxy.balance("SilentBalance", HOSTS)["result_code"] == 0
    assert proxy.balance("RaisingBalance", HOSTS)["result_code"] == 1


def test_a_balance_to_hosts_that_it_was_not_asked_about_is_reported(proxy: RunningProxy) -> None:
    answer = proxy.balance("MoveAbroad", HOSTS)
    assert answer["result_code"] == 1
    assert "was not asked about any of the hosts that it named" in answer["plugin_errors"]["MoveAbroad"][0]


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
    assert answer == well(HOSTS)


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
        ("runFilters", ["A", ["h"], "vm", {}], "filters: expected a list, not text"),
        ("runFilters", [["A"], [1], "vm", {}], "hosts.0.: expected text, not a whole number"),
        ("runFilters", [["A"], ["h"], None, {}], "vm: expected text, not null"),
        (
            "runFilters",
            [["A"], ["h"], "vm", {"a": 1}],
            "properties.*: expected text or null, not a whole number",
        ),
        ("runCostFunctions", [["A"], ["h"], "vm", {}], "cost_functions.0.: expected a list, not text"),
        ("runCostFunctions", [[["A", "1"]], ["h"], "vm", {}], "cost_functions.*: expected a whole number"),
        ("runCostFunctions", [[["A", True]], ["h"], "vm", {}], "values of type boolean are not known"),
        ("runFilters", [["A"], ["h"], "vm", []], "properties: expected an object, not a list"),
        ("runFilters", [["A"], ["h"], "vm", 5], "properties: expected an object, not a whole number"),
        ("runLoadBalancing", [["A"], ["h"], {}], "balance: expected text, not a list"),
    ],
)
def test_wrong_calls_get_a_clear_fault(
    proxy: RunningProxy, method: str, parameters: list[object], said: str
) -> None:
    with proxy.client() as client, pytest.raises(xmlrpc.client.Fault, match=said):
        getattr(client, method)(*parameters)


@pytest.mark.parametrize("none", ["", None])
def test_no_properties_may_come_as_empty_text_or_as_nothing(proxy: RunningProxy, none: str | None) -> None:
    with proxy.client() as client:
        answers = (
            client.runFilters(["KeepOdd"], HOSTS, "vm", none),
            client.runCostFunctions([["WeighSome", 1]], HOSTS[:1], "vm", none),
            client.runLoadBalancing("Move", HOSTS, none),
        )
    assert [answer["result"] for answer in answers if isinstance(answer, dict)] == [
        ["h1", "h3"],
        [["h1", 1, "WeighSome"]],
        [VM, ["h1", "h3"]],
    ]
