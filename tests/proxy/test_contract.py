"""What the engine gets from the four methods, through real HTTP and real workers."""

import urllib.request
import xmlrpc.client
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from ovirt_scheduler_proxy import scheduler
from ovirt_scheduler_proxy.processes import Outcome
from ovirt_scheduler_proxy.xmlrpc import Fault, read_question
from tests.proxy.running import RunningProxy, serving, units, well

HOSTS = ["h1", "h2", "h3", "h4"]
VM = "11111111-2222-3333-4444-555555555555"
ID = VM.encode()

_DESCRIBED = '''
class Unwelcome(Exception):
    refuses = True

class KeepOdd:
    """A class's own text is not its description."""
    properties_validation = "odd_limit=[0-9]*;odd_mode=a|b"
    def do_filter(self, hosts, vm, args):
        """Behält ungerade Hosts — 保持"""
        return [host for host in reversed(hosts) if host[-1] in "13"] * 2 + ["stranger"]

class Parametrized:
    properties_validation = "grenze=[0-9]*;\u0433\u0440=[0-9]*"
    def do_filter(self, hosts, vm, args):
        """keeps all"""
        return hosts

'''

#: Writes past all checks, into its worker's connection to the proxy.
_BY_FORCE = """
import contextlib, os, stat, struct
body = b'["vm-1", ["h1"]]'
for number in range(3, 30):
    with contextlib.suppress(OSError):
        if stat.S_ISSOCK(os.fstat(number).st_mode):
            os.write(number, struct.pack(">III", 0, 1, len(body)) + b"1" + body)
return ("", [])
"""

_RAISING = "raise ValueError('a & b <c>')"
REFUSES = "refuses the VM: nobody may run it; no host is accepted"

_FILTERS = units(
    KeepFirst="print('thinking aloud')\nreturn {hosts[0]}",
    KeepNone="return []",
    SilentFilter="pass",
    RaisingFilter=_RAISING,
    Strict=_RAISING,
    Refusing="raise Unwelcome(args.get('because', 'nobody may run it'))",
    Empty="return hosts if args == {'limit': '', 'other': '5'} else []",
    Echo="return hosts if (vm, args) == ('vm', {'key': 'wert ä'}) else []",
)
_WEIGHTS = units(
    "score",
    SilentWeight="pass",
    RaisingWeight=_RAISING,
    RefusingWeight="raise Unwelcome('nobody may run it')",
    Weigh="return [('h2', 7.6), ('h1', 2**40), ('stranger', 9), ('h4', -3)]",
    WeighSome="return [('h2', 3), ('h1', 1)]",
    WeighBadly="""
    given = {"nan": float("nan"), "text": "5", "none": None, "bool": True}
    return [("h1", given[args["how"]])]
    """,
)
_BALANCES = units(
    "balance",
    SilentBalance="pass",
    RaisingBalance=_RAISING,
    Move=f"'''moves'''\nreturn ('{VM}', ['stranger', 'h3', 'h1'])",
    MoveNowhere=f"return ('{VM}', ['stranger'])",
    MoveOddly="return ('vm-1', hosts)",
    MoveByForce=_BY_FORCE,
)
PLUGINS = _DESCRIBED + _FILTERS + _WEIGHTS + _BALANCES

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
    with serving(tmp_path_factory.mktemp("contract"), config=CONFIG, units=PLUGINS) as started:
        yield started


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
    assert (proxy.filters(["KeepFirst"], [])["result"], proxy.scores(["Weigh"], [])["result"]) == ([], [])
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


@pytest.mark.parametrize(
    ("unit", "result", "complaint"),
    [
        ("Move", [VM, ["h1", "h3"]], ""),
        ("SilentBalance", ["", []], ""),
        ("RaisingBalance", ["", []], "raised ValueError"),
        ("NoSuchBalance", ["", []], "nothing is balanced"),
        ("MoveNowhere", ["", []], "was not asked about any of the hosts that it named"),
        # A VM that the engine cannot read never reaches it.
        ("MoveOddly", ["", []], "nothing is balanced"),
        ("MoveByForce", ["", []], "nothing is balanced"),
    ],
)
def test_balance_always_has_two_fields(
    proxy: RunningProxy, unit: str, result: list[Any], complaint: str
) -> None:
    answer = proxy.balance(unit, HOSTS)
    assert (answer["result"], answer["result_code"]) == (result, int(bool(complaint)))
    assert complaint in str(answer["plugin_errors"].get(unit, ""))


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
    assert (len(weights), weights[0]) == (5002, [hosts[0], 3, "WeighSome"])


@pytest.mark.parametrize(
    ("method", "parameters", "said"),
    [
        ("noSuchMethod", [], "there is no method"),
        ("discover", [1], "takes 0 arguments"),
        ("runFilters", [["A"], ["h"], "vm"], "takes 4 arguments, not 3"),
        ("runFilters", ["A", ["h"], "vm", {}], "filters: expected a list, not text"),
        ("runFilters", [["A"], [1], "vm", {}], "hosts.0.: expected text, not a whole number"),
        ("runFilters", [["A"], ["h"], None, {}], "vm: expected text, not null"),
        ("runFilters", [["A"], ["h"], "vm", {"a": 1}], "properties.*: expected text or null, not a whole"),
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


# -- Units that fail, and questions that are too long: what the engine and its administrator are answered.
@pytest.mark.parametrize("unit", ["RaisingFilter", "SilentFilter", "NoSuchUnit"])
def test_a_failing_filter_accepts_and_is_reported(proxy: RunningProxy, unit: str) -> None:
    answer = proxy.filters([unit, "KeepOdd"], HOSTS)
    assert (answer["result"], answer["result_code"]) == (["h1", "h3"], 1)
    (sentence,) = answer["plugin_errors"][unit]
    assert "filtered no host" in sentence
    assert "Traceback" not in sentence


def test_a_failure_is_reported_once_in_a_while_but_always_counts(proxy: RunningProxy) -> None:
    first = proxy.filters(["DampedUnit"], HOSTS)
    second = proxy.filters(["DampedUnit"], HOSTS)
    assert (list(first["plugin_errors"]), second["plugin_errors"]) == (["DampedUnit"], {})
    assert first["result_code"] == second["result_code"] == 1
    assert list(proxy.scores(["DampedUnit"], HOSTS)["plugin_errors"]) == ["DampedUnit"]


def refusal(client: xmlrpc.client.ServerProxy, vm: str, because: str, *more: str) -> dict[str, list[str]]:
    answer = client.runFilters(["Refusing", *more], HOSTS, vm, {"because": because})
    assert isinstance(answer, dict)
    assert (answer["result"], answer["result_code"]) == ([], 1)
    reported = answer["plugin_errors"]
    assert isinstance(reported, dict)
    return reported


def test_each_refusal_is_reported_once_for_each_vm_and_reason(proxy: RunningProxy) -> None:
    with proxy.client() as client:
        reported = [refusal(client, f"refused-{at}", "no licence", "DampedLater") for at in range(300)]
        assert [list(one) for one in reported] == [["Refusing", "DampedLater"], *[["Refusing"]] * 299]
        assert all("refuses the VM: no licence" in one["Refusing"][0] for one in reported)
        assert refusal(client, "refused-7", "no licence") == {}
        assert list(refusal(client, "refused-7", "no room")) == ["Refusing"]
        assert refusal(client, "refused-7", "no licence") == {}


@pytest.mark.system
def test_what_was_reported_of_refusals_takes_little_memory(tmp_path: Path) -> None:
    config = '[log]\nlevel = "error"\n'
    with serving(tmp_path, config=config, units=PLUGINS) as proxy, proxy.client() as client:
        process = psutil.Process(proxy.process.pid)
        long = "because " * 5000
        for number in range(100):
            assert refusal(client, f"first-{number}", long)
        before = process.memory_info().rss
        for number in range(1000):
            assert refusal(client, f"vm-{number}", long)
        # Kept in full, they would take 40 MB.
        assert process.memory_info().rss - before < 10 << 20


@pytest.mark.parametrize(("unit", "said"), [("Strict", None), ("Absent", None), ("Refusing", REFUSES)])
def test_a_filter_that_fails_or_refuses_can_reject(proxy: RunningProxy, unit: str, said: str | None) -> None:
    answer = proxy.filters([unit, "KeepOdd"], HOSTS)
    assert (answer["result"], answer["result_code"]) == ([], 1)
    assert said is None or answer["plugin_errors"] == {unit: [said]}


@pytest.mark.parametrize(
    ("failing", "how"),
    [
        *((["WeighBadly"], how) for how in ("nan", "text", "none", "bool")),
        (["RefusingWeight"], ""),
        (["RaisingWeight", "SilentWeight", "NoSuchScore"], ""),
    ],
)
def test_units_that_fail_contribute_no_weights(proxy: RunningProxy, failing: list[str], how: str) -> None:
    answer = proxy.scores([*failing, "WeighSome"], ["h1"], {"how": how})
    assert (answer["result"], answer["result_code"]) == ([["h1", 1, "WeighSome"]], 1)
    assert len(failing) == 1 or list(answer["plugin_errors"]) == failing


@pytest.mark.parametrize(
    "body",
    [b'["vm", ["h1"]]', b'["", ["h1"]]', b'["%s", ["h2"]]' % ID, b'["%s", []]' % ID, b"[]", b"\xff", b"5"],
)
def test_what_a_worker_says_is_checked_once_more(body: bytes) -> None:
    assert scheduler.checked(Outcome(body), ["h1"], None).failure is not None
    assert scheduler.checked(Outcome(b'["%s", ["h1"]]' % ID), ["h1"], None).failure is None


LONG, LONGER = "x" * 1000, "x" * 1001
TEXTS = {
    "runFilters": [["{}"], ["{}"], "{}", {"{}": "v"}],
    "runCostFunctions": [[["{}", 1]], ["{}"], "{}", {"{}": "v"}],
    "runLoadBalancing": ["{}", ["{}"], {"{}": "v"}],
}


def filled(given: Any, texts: list[str]) -> Any:
    """The arguments, with the next of the texts in each place."""
    if isinstance(given, list):
        return [filled(one, texts) for one in given]
    if isinstance(given, dict):
        return {filled(name, texts): value for name, value in given.items()}
    return texts.pop(0) if given == "{}" else given


@pytest.mark.parametrize("method", TEXTS)
def test_what_is_longer_than_the_engines_is_a_fault(method: str) -> None:
    count = str(TEXTS[method]).count("{}")
    assert read_question(method, filled(TEXTS[method], [LONG] * count))
    for place in range(count):
        texts = ["short"] * place + [LONGER] + ["short"] * (count - place - 1)
        with pytest.raises(Fault) as fault:
            read_question(method, filled(TEXTS[method], texts))
        assert "expected text of length <= 1000" in fault.value.sentence
        assert len(fault.value.sentence) < 200


def test_the_value_of_a_property_may_be_long() -> None:
    fits, exceeds = ([["unit"], ["host"], "vm", {"name": "v" * size}] for size in (100_000, 100_001))
    assert read_question("runFilters", fits).properties == fits[3]
    with pytest.raises(Fault):
        read_question("runFilters", exceeds)
