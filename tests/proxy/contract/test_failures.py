"""Units that fail, and questions that are too long: what the engine and its administrator are answered."""

import xmlrpc.client
from pathlib import Path
from typing import Any

import psutil
import pytest

from ovirt_scheduler_proxy import scheduler
from ovirt_scheduler_proxy.processes import Outcome
from ovirt_scheduler_proxy.xmlrpc import Fault, read_question

from ..running import RunningProxy, serving
from .units import HOSTS, PLUGINS, VM

ID = VM.encode()


@pytest.mark.parametrize("unit", ["RaisingFilter", "SilentFilter", "NoSuchUnit"])
def test_a_failing_filter_accepts_and_is_reported(proxy: RunningProxy, unit: str) -> None:
    answer = proxy.filters([unit, "KeepOdd"], HOSTS)
    assert answer["result"] == ["h1", "h3"]
    assert answer["result_code"] == 1
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
        reported = [
            refusal(client, f"refused-{number}", "no licence", "DampedLater") for number in range(300)
        ]
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


@pytest.mark.parametrize("unit", ["Strict", "Absent"])
def test_on_failure_can_reject(proxy: RunningProxy, unit: str) -> None:
    assert proxy.filters([unit, "KeepOdd"], HOSTS)["result"] == []


def test_a_filter_can_refuse_with_a_reason(proxy: RunningProxy) -> None:
    answer = proxy.filters(["Refusing", "KeepOdd"], HOSTS)
    assert (answer["result"], answer["result_code"]) == ([], 1)
    assert answer["plugin_errors"] == {"Refusing": ["refuses the VM: nobody may run it; no host is accepted"]}
    weighed = proxy.scores(["RefusingWeight", "WeighSome"], HOSTS)
    assert {unit for _, _, unit in weighed["result"]} == {"WeighSome"}


@pytest.mark.parametrize("how", ["nan", "text", "none", "bool"])
def test_a_bad_weight_is_the_units_failure(proxy: RunningProxy, how: str) -> None:
    answer = proxy.scores(["WeighBadly", "WeighSome"], ["h1"], {"how": how})
    assert answer["result"] == [["h1", 1, "WeighSome"]]
    assert answer["result_code"] == 1


def test_failing_units_contribute_no_weights(proxy: RunningProxy) -> None:
    failing = ["RaisingWeight", "SilentWeight", "NoSuchScore"]
    answer = proxy.scores(failing, HOSTS)
    assert (answer["result"], list(answer["plugin_errors"])) == ([], failing)


@pytest.mark.parametrize("unit", ["MoveOddly", "MoveByForce"])
def test_a_vm_that_the_engine_cannot_read_never_reaches_it(proxy: RunningProxy, unit: str) -> None:
    answer = proxy.balance(unit, HOSTS)
    assert answer["result"] == ["", []]
    assert answer["result_code"] == 1
    assert "nothing is balanced" in answer["plugin_errors"][unit][0]


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


@pytest.mark.parametrize(("size", "fits"), [(100_000, True), (100_001, False)])
def test_the_value_of_a_property_may_be_long(size: int, fits: bool) -> None:
    given = [["unit"], ["host"], "vm", {"name": "v" * size}]
    if fits:
        assert read_question("runFilters", given).properties == given[3]
    else:
        with pytest.raises(Fault):
            read_question("runFilters", given)
