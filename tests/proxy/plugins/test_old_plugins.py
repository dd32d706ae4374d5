"""Plugins in the manner of the old proxy: results are printed, errors go to stderr, nothing is returned."""

from collections.abc import Iterator

import pytest

from ..running import RunningProxy, serving

HOSTS = ["11111111-1111-1111-1111-111111111111", "22222222-2222-2222-2222-222222222222"]
VM = "33333333-3333-3333-3333-333333333333"

PLUGINS = '''
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
        print(('33333333-3333-3333-3333-333333333333', ['11111111-1111-1111-1111-111111111111']))


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
        print([(host, len(host) / 5) for host in hosts])

    def do_balance(self, hosts, args):
        vm = "33333333-3333-3333-3333-333333333333"
        print(vm, hosts[1:])


class wraps_its_output(object):
    def do_filter(self, hosts, vm, args):
        import io
        sys.stdout = io.TextIOWrapper(sys.stdout.detach(), encoding="utf-8")
        print(hosts)
'''


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningProxy]:
    with serving(tmp_path_factory.mktemp("old"), old_plugin=PLUGINS) as started:
        yield started


def test_discovery(proxy: RunningProxy) -> None:
    found = proxy.discover()
    assert isinstance(found, dict)
    assert found["filters"]["old_style"] == ["prints what it accepts", "maximum_vm_count=[0-9]*"]
    assert set(found["scores"]) == set(found["balance"]) == {"old_style", "engine_away", "talkative"}


def test_printed_answers(proxy: RunningProxy) -> None:
    assert proxy.filters(["old_style"], HOSTS)["result"] == HOSTS
    assert proxy.scores(["old_style"], HOSTS)["result"] == [[host, 50, "old_style"] for host in HOSTS]
    assert proxy.balance("old_style", HOSTS)["result"] == [VM, HOSTS[:1]]


def test_an_answer_may_wait_in_a_stream_of_the_units_own(proxy: RunningProxy) -> None:
    for _ in range(3):
        assert proxy.filters(["wraps_its_output"], HOSTS[1:])["plugin_errors"] == {}
        assert proxy.filters(["wraps_its_output"], HOSTS[1:])["result"] == HOSTS[1:]
    assert proxy.filters(["old_style"], HOSTS)["result"] == HOSTS


def test_other_prints_go_to_the_log(proxy: RunningProxy) -> None:
    assert proxy.filters(["talkative"], HOSTS)["result"] == HOSTS[:1]
    assert proxy.scores(["talkative"], HOSTS)["result"] == [[host, 7, "talkative"] for host in HOSTS]
    assert proxy.balance("talkative", HOSTS)["result"] == [VM, HOSTS[1:]]


def test_no_answer_is_a_failure_but_for_balance(proxy: RunningProxy) -> None:
    answer = proxy.filters(["engine_away", "old_style"], HOSTS)
    assert answer["result"] == HOSTS
    assert "neither returned nor printed" in answer["plugin_errors"]["engine_away"][0]
    assert proxy.scores(["engine_away"], HOSTS)["result"] == []
    balanced = proxy.balance("engine_away", HOSTS)
    assert (balanced["result"], balanced["result_code"]) == (["", []], 0)
