"""`why VM --last`: what a proxy recorded is reported with names, from rotated files too.

That a real proxy records so is shown by test_why_last_night, and by test_operation.py of each field.
"""

import os
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ovirt_placement.answers import proxy as local_proxy
from ovirt_placement.cli.main import main
from ovirt_placement.model import state_file
from tests.builders import host, snapshot, vm
from tests.placement.cli.documents import plain

HOSTS = ["h1", "h2", "h3"]


def record_decision(file: Path, method: str, vm_id: str, *, time: float, **fields: Any) -> None:
    """As a proxy writes it."""
    line = {
        "time": time, "seconds": 0.001, "request": f"r{time:.0f}", "method": method, "vm": vm_id,
        "hosts": HOSTS, "fallen": {}, "weights": {}, "balance": None, "failure_sentences": {}, **fields,
    }  # fmt: skip
    with file.open("ab") as record:
        record.write(msgspec.json.encode(line) + b"\n")


class Asking:
    """A record as a proxy writes it, and `why VM --last` about it."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.record = folder / "decisions.jsonl"
        self._state = folder / "state.json"
        self._capsys = capsys
        self._numbers = count()
        hosts = (host("h1", name="north"), host("h2", name="south"), host("h3", name="east"))
        vms = (vm("v1", name="web"), vm("v2", name="cache"), vm("v3", name="mail"))
        self._state.write_bytes(state_file.dumps(snapshot(*hosts, *vms)))

    def recorded(self, method: str, vm_id: str, **fields: Any) -> None:
        record_decision(self.record, method, vm_id, **{"time": 1e9 + next(self._numbers), **fields})

    def filters(self, vm_id: str, **fallen: str) -> None:
        """Each host that falls with its unit."""
        self.recorded("runFilters", vm_id, fallen={host: [unit] for host, unit in fallen.items()})

    def scores(self, vm_id: str) -> None:
        self.recorded("runCostFunctions", vm_id, hosts=HOSTS[:2], weights={"Keep": [0, 1]})

    def text(self, *arguments: str, status: int = 0) -> str:
        assert main(["why", *arguments, "--last", "--state", str(self._state)]) == status
        printed = self._capsys.readouterr()
        return printed.out if status == 0 else printed.err

    def last(self, *arguments: str) -> str:
        return self.text(*arguments, "--decisions", str(self.record))

    def data(self, *arguments: str) -> Any:
        return plain(self.last(*arguments, "--json"))["decisions"]


@pytest.fixture
def asking(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Asking:
    return Asking(tmp_path, capsys)


def test_the_last_decision_is_reported_with_time_units_and_weights(asking: Asking) -> None:
    asking.filters("v1", h1="Keep")
    asking.scores("v1")
    asking.filters("v1", h3="Keep")
    asking.filters("v2", h2="Keep")
    asking.scores("v1")
    heading, title, _, *rows = asking.last("web").splitlines()
    assert "runFilters" in heading
    assert "2 of 3 hosts passed" in heading
    assert title.split() == ["host", "verdict", "why", "by"]
    assert [row.split() for row in rows[:3]] == [
        ["north", "passed"],
        ["south", "passed"],
        ["east", "dropped", "no", "reason", "is", "recorded", "Keep"],
    ]
    assert "runCostFunctions" in rows[4]
    assert [row.split() for row in rows[5:9] if "-" not in row] == [
        ["host", "Keep"],
        ["north", "0"],
        ["south", "1"],
    ]
    filtered, weighed = asking.data("web", "east")
    (east,) = filtered["hosts"]
    assert (east["host"], east["dropped_by"], east["weights"]) == ("h3", ["Keep"], {})
    assert weighed["hosts"] == []


def test_weights_of_an_earlier_decision_are_left_out(asking: Asking) -> None:
    asking.scores("v1")
    asking.filters("v1")
    assert [one["method"] for one in asking.data("web")] == ["runFilters"]


def test_a_refusal_is_reported_with_its_reason(asking: Asking) -> None:
    said = {"Refusing": "refuses the VM: no licence for it"}
    fallen = dict.fromkeys(HOSTS, ("Refusing",))
    asking.recorded("runFilters", "v1", fallen=fallen, failure_sentences=said)
    (refused,) = asking.data("web")
    assert refused["failures"] == said
    assert [one["dropped_by"] for one in refused["hosts"]] == [["Refusing"]] * 3
    assert "Refusing refuses the VM: no licence for it" in asking.last("web")


def test_a_balance_that_chose_the_vm_is_reported(asking: Asking) -> None:
    asking.recorded("runLoadBalancing", "", balance=("v3", HOSTS[:2]))
    assert asking.data("mail")[0]["move_to"] == ["h1", "h2"]
    assert "it is to move to north or south" in asking.last("mail")
    assert asking.last("cache") == f"{asking.record} has no decision about VM cache\n"


def test_a_decision_whose_reasons_name_the_vm_is_not_about_it(asking: Asking) -> None:
    asking.recorded("runFilters", "v2", fallen={"h1": ["Theirs"]}, reasons={"Theirs": {"h1": {"vm": "v1"}}})
    assert asking.data("cache")
    assert asking.last("web") == f"{asking.record} has no decision about VM web\n"


def test_the_record_begins_with_its_oldest_decision_though_the_clock_was_set_back(asking: Asking) -> None:
    for time in (2e9, 1e9, 3e9):
        asking.recorded("runCostFunctions", "v1", time=time)
    assert local_proxy.begins(asking.record) == 1e9


def test_a_decision_in_a_file_that_made_way_is_found(asking: Asking) -> None:
    asking.filters("v1", h2="Keep")
    asking.record.rename(asking.record.with_name("decisions.jsonl.1"))
    asking.filters("v2")
    (found,) = asking.data("web")
    assert [one["dropped_by"] for one in found["hosts"]] == [[], ["Keep"], []]


def test_a_line_that_is_not_whole_yet_is_left(asking: Asking) -> None:
    asking.filters("v1")
    with asking.record.open("ab") as record:
        record.write(b'{"time":1,"vm":"v1","hos')
    assert len(asking.data("web")) == 1


def test_the_proxys_configuration_says_where_its_record_is(
    asking: Asking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_proxy, "PROXY_DIRECTORY", tmp_path)
    for name in [name for name in os.environ if name.startswith("OVIRT_")]:
        monkeypatch.delenv(name)
    complaint = asking.text("web", status=2)
    assert complaint.count("\n") == 1
    assert f"there is neither {tmp_path}/ovirt-scheduler-proxy.toml nor /var/log/" in complaint
    asking.filters("v1")
    (tmp_path / "ovirt-scheduler-proxy.toml").write_text(f'[decisions]\nfile = "{asking.record}"\n')
    assert "3 of 3 hosts passed" in asking.text("web")
    # Another file, as the proxy itself has it named.
    (tmp_path / "ovirt-scheduler-proxy.toml").rename(tmp_path / "mine.toml")
    asking.text("web", status=2)
    monkeypatch.setenv("OVIRT_SCHEDULER_PROXY_CONFIG", str(tmp_path / "mine.toml"))
    assert "3 of 3 hosts passed" in asking.text("web")


def test_a_proxy_that_is_not_to_record_is_said_to_be_so(
    asking: Asking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_proxy, "PROXY_DIRECTORY", tmp_path)
    (tmp_path / "ovirt-scheduler-proxy.toml").write_text("[decisions]\nrecord = false\n")
    assert "record = false in section [decisions]" in asking.text("web", status=2)


def test_a_record_that_cannot_be_read_is_said_in_one_line(asking: Asking, tmp_path: Path) -> None:
    missing = tmp_path / "none.jsonl"
    complaint = asking.text("web", "--decisions", str(missing), status=2)
    assert complaint.startswith(f"ovirt-placement: {missing}: there is no such file: the proxy has recorded")
    assert complaint.count("\n") == 1


def test_the_age_of_the_state_stands_with_each_decision_of_ours(asking: Asking) -> None:
    for method, unit in (("runFilters", "AffinityFilter"), ("runCostFunctions", "SoftAffinityWeight")):
        asking.recorded(method, "v1", state_age_seconds={unit: 700.5})
    assert ", on a state 70" in asking.last("web")
    found = [set(one["state_age_seconds"]) for one in asking.data("web")]
    assert found == [{"AffinityFilter"}, {"SoftAffinityWeight"}]
