"""What a unit answers, in types of Python's or of its own, is checked and brought into its final form."""

import json
import math
import os
from array import array
from collections.abc import Iterator
from decimal import ROUND_HALF_EVEN, Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ovirt_scheduler_proxy.worker import contract as answers
from ovirt_scheduler_proxy.worker.contract import NOTHING, find_answer
from ovirt_scheduler_proxy.worker.kernel import create_memory, read_memory
from tests.proxy.running import RunningProxy, eventually, serving, units

VM = "11111111-2222-3333-4444-555555555aBc"
IDS = st.sampled_from([f"h{number}" for number in range(8)])
ASKED = st.lists(IDS, unique=True)
NUMBERS = st.integers() | st.floats(allow_nan=False) | st.fractions()
NO_WEIGHT = (
    st.none() | st.booleans() | st.text() | st.just(float("nan")) | st.lists(st.integers(), max_size=1)
)


class OfAge(list[Any]):
    def __init__(self, age: Any) -> None:
        super().__init__()
        self.state_age_seconds = age


@given(st.floats(0, 3e9) | st.integers(0, 10**9))
def test_an_answer_says_how_old_the_state_was(age: float) -> None:
    assert answers.state_age(OfAge(age)) == age


@pytest.mark.parametrize("age", [None, True, "7", -1, math.nan, math.inf, 10**400, [3.0]])
def test_what_is_no_age_is_left_out(age: Any) -> None:
    assert answers.state_age(OfAge(age)) is None
    assert answers.state_age([]) is None


@given(ASKED, st.lists(IDS), st.sampled_from([list, tuple, set, frozenset]))
def test_a_filter_marks_the_hosts_that_it_names(asked: list[str], named: list[str], kind: Any) -> None:
    mask = answers.filter_answer(kind(named), asked)
    assert [host for host, mark in zip(asked, mask, strict=True) if mark] == [h for h in asked if h in named]


@given(ASKED, st.lists(st.tuples(IDS, NUMBERS)))
def test_every_host_gets_a_weight_and_no_unmentioned_one_the_best(
    asked: list[str], pairs: list[tuple[str, Any]]
) -> None:
    weights = array("i", answers.score_answer(pairs, asked)).tolist()
    assert len(weights) == len(asked)
    reported = {host: [_int32(weight) for named, weight in pairs if named == host] for host in asked}
    worst = max((max(given) for given in reported.values() if given), default=0)
    assert weights == [max(reported[host], default=worst) for host in asked]


@given(ASKED, st.tuples(IDS, NO_WEIGHT))
def test_what_is_no_weight_is_refused(asked: list[str], pair: tuple[str, Any]) -> None:
    with pytest.raises(answers.InvalidAnswer):
        answers.score_answer([pair], asked)


NO_VM = (
    *("vm1", " ", VM.replace("-", ""), f"{VM} ", f" {VM}", f"{VM}\n", f"{VM}\0", f"{{{VM}}}"),
    *(f"urn:uuid:{VM}", "1-1-1-1-1", VM[1:], VM[:-1], f"0{VM}", f"{VM}0", VM.replace("2222", "222")),
    *(
        VM.replace("22", "222"),
        "٣" + VM[1:],
        "g" + VM[1:],
        VM.replace("1", "\uff11"),
        VM.replace("-", "\u2013"),
        VM.replace("-", "_"),
    ),
)
NO_HOSTS = (None, "h1", 5, {"h1": 1}, iter(["h1"]), [1], [None], [["h1"]])
NO_PAIRS = (5, ["h1"], [("h1",)], [("h1", 1, "U")], [(1, 1)], ["ab"], [{"h1": 1}], [{"h1": 1, 2: 3}])
NO_MOVE = ("vm", ("vm",), (5, ["h1"]), (VM.encode(), ["h1"]), (VM, "h1"), (VM, [5]), {VM: 0, ("h1",): 0})


@pytest.mark.parametrize(
    ("take", "answer", "words"),
    [
        *((answers.filter_answer, answer, "") for answer in NO_HOSTS),
        (answers.filter_answer, [10**10000], "a int, which is no host id"),
        *((answers.score_answer, answer, "") for answer in NO_PAIRS),
        *((answers.balance_answer, answer, "") for answer in NO_MOVE),
        *((answers.balance_answer, (vm, ["h1"]), "no VM id") for vm in NO_VM),
    ],
)
def test_what_is_no_answer_is_refused(take: Any, answer: Any, words: str) -> None:
    with pytest.raises(answers.InvalidAnswer, match=words or None):
        take(answer, ["h1"])


@given(ASKED, st.uuids().map(str), st.lists(IDS))
def test_balance_names_hosts_that_were_asked_or_moves_nothing(
    asked: list[str], vm: str, targets: list[str]
) -> None:
    named = [host for host in asked if host in targets]
    if targets and not named:
        with pytest.raises(answers.InvalidAnswer, match="was not asked about"):
            answers.balance_answer((vm, targets), asked)
        return
    found = json.loads(answers.balance_answer((vm, targets), asked))
    assert found == ([vm, named] if named else ["", []])


@pytest.mark.parametrize(
    ("weight", "sent"),
    [(10**10000, 2**31 - 1), (Fraction(-(10**10000)), -(2**31)), (Fraction(10**10000, 3 * 10**9999), 3)],
    ids=["integer", "negative fraction", "small fraction"],
)
def test_a_weight_may_be_of_any_size(weight: Any, sent: int) -> None:
    assert array("i", answers.score_answer([("h1", weight)], ["h1"])).tolist() == [sent]


def test_what_is_refused_is_shown_in_short_and_in_one_line() -> None:
    with pytest.raises(answers.InvalidAnswer) as caught:
        answers.filter_answer([["\x1b\n\u2028\ud800" + "x" * 5000]], ["h1"])
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 150


@pytest.mark.parametrize("answer", [None, ("", []), (None, ["h1"]), (VM, [])])
def test_nothing_to_balance(answer: Any) -> None:
    assert json.loads(answers.balance_answer(answer, ["h1"])) == ["", []]


@given(
    st.lists(st.text()) | st.lists(st.tuples(st.text(), st.integers())) | st.tuples(st.text(), st.lists(IDS))
)
def test_a_printed_literal_is_the_answer(answer: Any) -> None:
    assert find_answer(f"{answer!r}\n", balance=False) == (answer, "")


@given(
    st.lists(IDS), st.lists(st.text("abc =<(", max_size=9), max_size=3), st.lists(st.text("xyz ", max_size=9))
)
def test_other_prints_do_not_hide_the_answer(answer: list[str], before: list[str], after: list[str]) -> None:
    printed = "".join(f"{line}\n" for line in [*before, "!", repr(answer), *after])
    found, rest = find_answer(printed, balance=False)
    assert found == answer
    assert rest.split() == " ".join([*before, "!", *after]).split()


def test_a_vm_and_its_hosts_may_be_printed_side_by_side() -> None:
    printed = "3333-44 ['h1', 'h2']\n"
    assert find_answer(printed, balance=True) == (("3333-44", ["h1", "h2"]), "")
    assert find_answer(printed, balance=False) == (NOTHING, printed)


@pytest.mark.parametrize("printed", ["", "\n \n", "no answer", "[unfinished", "h1, h2 what", "[" * 10_000])
def test_what_is_no_literal_is_no_answer(printed: str) -> None:
    assert find_answer(printed, balance=True)[0] is NOTHING


def _int32(weight: Any) -> int:
    """Rounded half to even, held within 32 bits."""
    if isinstance(weight, float) and math.isinf(weight):
        return 2**31 - 1 if weight > 0 else -(2**31)
    if isinstance(weight, Fraction):
        weight = weight.numerator / weight.denominator
    exact = Decimal(weight).quantize(Decimal(1), ROUND_HALF_EVEN) if abs(weight) < 2**40 else Decimal(weight)
    return int(min(max(exact, Decimal(-(2**31))), Decimal(2**31 - 1)))


HOSTS = ["h1", "h2"]

PLUGINS = """
class Leaving(Exception):
    def __str__(self):
        raise SystemExit(3)

class Odd(Exception):
    @property
    def refuses(self):
        raise SystemExit(3)

class List(list):
    def __iter__(self):
        raise SystemExit(3)

class Text(str):
    def __hash__(self):
        raise SystemExit(3)

"""
CRASHING = r"""
import ctypes, os
os.write(2, b"noise\n" * 40_000)
ctypes.string_at(0)
"""

#: What each unit does, and how the sentence begins with which it is reported.
FAILING = {
    "Huge": ("raise RuntimeError('x' * 3_000_000)", "raised RuntimeError: xxx"),
    "Unshown": ("raise Leaving()", "raised Leaving;"),
    "RefusesOddly": ("raise Odd('no')", "raised Odd: no;"),
    "Halves": (r"raise RuntimeError('\ud800 \x1b[31m \0')", r"raised RuntimeError: \ud800 \x1b[31m \x00;"),
    "Lines": (r"raise RuntimeError('first\nsecond')", "raised RuntimeError: first second;"),
    "LeavingList": ("return List(hosts)", "its answer cannot be read: SystemExit: 3;"),
    "LeavingText": ("return list(map(Text, hosts))", "its answer cannot be read: SystemExit: 3;"),
    "Crashing": (CRASHING, "crashed its worker process (SIGSEGV);"),
}


#: In the manner of the old proxy: results are printed, errors go to stderr, nothing is returned.
OLD = '''
from __future__ import print_function
import sys


class old_style():
    properties_validation = 'maximum_vm_count=[0-9]*'

    def do_filter(self, hosts, vm, args):
        """prints what it accepts"""
        try:
            accepted = []
            for host in hosts:
                accepted.append(host)
            print(accepted)
        except Exception as ex:
            print(ex, file=sys.stderr)

    def do_score(self, hosts, vm, args):
        print([(host, 50) for host in hosts])

    def do_balance(self, hosts, args):
        print(('11111111-2222-3333-4444-555555555aBc', ['h1']))


class engine_away(object):
    def do_filter(self, hosts, vm, args):
        print("connection refused", file=sys.stderr)
        return

    def do_score(self, hosts, vm, args):
        return self.do_filter(hosts, vm, args)

    def do_balance(self, hosts, args):
        return self.do_filter(hosts, None, args)


class talkative(object):
    def do_filter(self, hosts, vm, args):
        print("looking at", len(hosts), "hosts")
        sys.stdout.flush()
        print(hosts[:1])
        print("done")

    def do_score(self, hosts, vm, args):
        print([(host, len(host) * 3.6) for host in hosts])

    def do_balance(self, hosts, args):
        vm = "11111111-2222-3333-4444-555555555aBc"
        print(vm, hosts[1:])


class wraps_its_output(object):
    def do_filter(self, hosts, vm, args):
        import io
        sys.stdout = io.TextIOWrapper(sys.stdout.detach(), encoding="utf-8")
        print(hosts)
'''


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningProxy]:
    failing = PLUGINS + units(**{unit: deed for unit, (deed, _) in FAILING.items()})
    with serving(tmp_path_factory.mktemp("types"), units=failing, old_plugin=OLD) as started:
        yield started


@pytest.mark.parametrize("unit", FAILING)
def test_a_unit_fails_with_its_own_sentence(proxy: RunningProxy, unit: str) -> None:
    answer = proxy.filters([unit], HOSTS)
    assert answer["result"] == HOSTS
    assert answer["plugin_errors"][unit][0].startswith(FAILING[unit][1])
    assert len(answer["plugin_errors"][unit][0]) < 400


def test_of_a_crash_the_log_has_the_last_words(proxy: RunningProxy) -> None:
    proxy.filters(["Crashing"], HOSTS)
    eventually(lambda: "Crashing: Fatal Python error: Segmentation fault" in proxy.log)
    assert proxy.log.count("noise") < 20_000


def test_what_a_unit_does_to_the_memory_of_its_output_costs_nobody_else_any() -> None:
    memory = create_memory("stderr", 100)
    os.write(memory, b"last words")
    os.lseek(memory, 1 << 50, os.SEEK_SET)
    assert read_memory(memory) == "last words".ljust(100, "\0")
    with pytest.raises(PermissionError):  # the next unit of the worker would have none
        os.ftruncate(memory, 0)
    os.close(memory)


def test_old_plugins_are_discovered(proxy: RunningProxy) -> None:
    found = proxy.discover()
    assert isinstance(found, dict)
    assert found["filters"]["old_style"] == ["prints what it accepts", "maximum_vm_count=[0-9]*"]
    assert set(found["scores"]) == set(found["balance"]) == {"old_style", "engine_away", "talkative"}


@pytest.mark.parametrize(("unit", "kept", "weight"), [("old_style", HOSTS, 50), ("talkative", HOSTS[:1], 7)])
def test_printed_answers_are_taken_and_other_prints_are_none(
    proxy: RunningProxy, unit: str, kept: list[str], weight: int
) -> None:
    assert proxy.filters([unit], HOSTS)["result"] == kept
    assert proxy.scores([unit], HOSTS)["result"] == [[host, weight, unit] for host in HOSTS]
    assert proxy.balance(unit, HOSTS)["result"] == [VM, HOSTS[:1] if unit == "old_style" else HOSTS[1:]]


def test_an_answer_may_wait_in_a_stream_of_the_units_own(proxy: RunningProxy) -> None:
    for _ in range(3):
        assert proxy.filters(["wraps_its_output"], HOSTS[1:])["plugin_errors"] == {}
        assert proxy.filters(["wraps_its_output"], HOSTS[1:])["result"] == HOSTS[1:]
    assert proxy.filters(["old_style"], HOSTS)["result"] == HOSTS


def test_no_answer_is_a_failure_but_for_balance(proxy: RunningProxy) -> None:
    answer = proxy.filters(["engine_away", "old_style"], HOSTS)
    assert answer["result"] == HOSTS
    assert "neither returned nor printed" in answer["plugin_errors"]["engine_away"][0]
    assert proxy.scores(["engine_away"], HOSTS)["result"] == []
    balanced = proxy.balance("engine_away", HOSTS)
    assert (balanced["result"], balanced["result_code"]) == (["", []], 0)
