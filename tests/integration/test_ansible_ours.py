"""Our collection for Ansible: its modules, run by a playbook, with the commands and a simulated engine."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from os import environ
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ovirt_placement.config import EngineSettings
from ovirt_placement.engine.users import UserTokens
from ovirt_simulator.core.backend import PROMPT
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.http.server import serve
from tests.builders import APART, cluster, group, host, snapshot, vm
from tests.configuration import PASSWORD, write_configuration
from tests.paths import CHECKOUT, DATA
from tests.plugins.proxy_process import proxy_url

_PLAYBOOKS = DATA / "ansible"

#: What a module returned, by the task's name.
Results = dict[str, dict[str, Any]]


def play(
    playbook: str, engine: str, home: Path, *, more: Mapping[str, str] | None = None, **variables: str
) -> Results:
    """Run a playbook to its end; tasks may fail where they ignore it. `more` is put into the environment."""
    given = {"engine": engine, **variables}
    command = [
        str(Path(sys.executable).with_name("ansible-playbook")), "--inventory=localhost,",
        "--connection=local", f"--extra-vars={json.dumps(given)}", str(_PLAYBOOKS / playbook),
    ]  # fmt: skip
    environment = _environment(home) | dict(more or {})
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    tasks = [task for part in json.loads(done.stdout)["plays"] for task in part["tasks"]]
    results = {task["task"]["name"]: task["hosts"]["localhost"] for task in tasks}
    assert len(results) == len(tasks), "each task has a name of its own"
    return results


def _environment(home: Path) -> dict[str, str]:
    """Nothing of the user's own settings, and an engine known to the playbook only."""
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith(("ANSIBLE_", "OVIRT_"))
    }
    return inherited | {
        "HOME": str(home),
        "ANSIBLE_HOME": str(home / "ansible"),
        "ANSIBLE_PYTHON_INTERPRETER": sys.executable,
        "ANSIBLE_STDOUT_CALLBACK": "ansible.posix.json",
        "LC_ALL": "C.UTF-8",
    }


COMMANDS = Path(sys.executable).parent
COLLECTION = CHECKOUT / "packaging" / "ansible"
STATE = snapshot(
    cluster("c1", name="blue"), cluster("c2", name="red"), host("h1", name="north", cluster="c1"),
    host("h2", name="south", cluster="c1"), host("h3", name="east", cluster="c2"),
    vm("v1", "h1", name="web1", cluster="c1"), vm("v2", "h1", name="web2", cluster="c1"),
    vm("v3", "h2", name="web3", cluster="c1"), vm("v4", "h3", name="elsewhere", cluster="c2"),
    group("g1", APART, "v1 v2", cluster="c1", name="apart"),
)  # fmt: skip
pytestmark = [pytest.mark.nightly, pytest.mark.xdist_group("ansible-ours")]


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with proxy_url(environ) as proxy:
        yield Engine.from_snapshot(STATE, clock=datetime.now(UTC), settings=PROMPT, proxy=proxy)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("ansible")


@pytest.fixture(scope="module")
def url(engine: Engine) -> Iterator[str]:
    server = serve(engine)
    yield server.api_url
    server.close()


@pytest.fixture(scope="module")
def environment(folder: Path) -> dict[str, str]:
    """Where Ansible finds the collection."""
    parent = folder / "collections" / "ansible_collections" / "ovirt_placement"
    parent.mkdir(parents=True)
    (parent / "core").symlink_to(COLLECTION)
    return {"ANSIBLE_COLLECTIONS_PATH": str(folder / "collections")}


@pytest.fixture(scope="module")
def results(url: str, folder: Path, environment: dict[str, str]) -> Results:
    return play(
        "collection.yml",
        url,
        folder,
        more=environment,
        config=str(write_configuration(folder, url)),
        commands=str(COMMANDS),
        token=UserTokens(EngineSettings(url=url)).log_in("admin@internal", PASSWORD),
    )


class Names(NamedTuple):
    """What the engine has once all modules have run."""

    groups: set[str]
    policies: set[str]


@pytest.fixture(scope="module")
def names(results: Results, engine: Engine) -> Names:
    groups, policies = engine.queries.state.groups_of("c1"), engine.queries.state.policies.values()
    return Names({one.name for one in groups}, {one.name for one in policies})


CHANGES = {
    "keys": ("try keys", "set keys", "set keys again"),
    "affinity_group": ("try a group", "add a group", "add a group again"),
    "affinity_group, absent": ("try to remove a group", "remove a group", "remove a group again"),
    "policy": ("try rules", "apply rules", "apply rules again"),
    "scheduling_policy": ("try to set up", "set up", "set up again"),
    "scheduling_policy, absent": ("try to undo", "undo", "undo again"),
}


@pytest.mark.parametrize("tasks", CHANGES.values(), ids=list(CHANGES))
def test_a_change_is_tried_made_and_not_repeated(results: Results, tasks: tuple[str, str, str]) -> None:
    tried, made, again = (results[task] for task in tasks)
    assert [one.get("msg") for one in (tried, made, again)] == [None] * 3
    assert [one["changed"] for one in (tried, made, again)] == [True, True, False]
    assert (tried["answer"]["dry_run"], made["answer"]["dry_run"]) == (True, False)


@pytest.mark.parametrize(
    ("task", "shown"),
    [
        ("try keys", '"name": "rack"'),
        ("try a group", '"priority": 2.5'),
        ("try rules", '"most": 1'),
        ("try to set up", '"HostAffinityWeight": 30'),
    ],
)
def test_check_mode_shows_the_difference(results: Results, task: str, shown: str) -> None:
    assert shown in results[task]["diff"]["after"]
    assert shown not in results[task]["diff"]["before"]


def test_what_modules_did_is_in_the_engine_and_what_was_tried_is_not(results: Results, names: Names) -> None:
    assert names.groups == {"apart"}
    assert "ovirt-placement" not in names.policies
    assert [one["name"] for one in results["set up"]["answer"]["after"][0]["clusters"]] == ["blue"]


def test_a_change_that_is_not_to_be_made_fails_the_task(results: Results) -> None:
    stopped = results["add a group that a condition stops"]
    assert (stopped["failed"], stopped["msg"]) == (True, "nothing was changed: violated>0 (1)")
    refused = results["add a group that the engine would refuse"]
    assert refused["failed"]
    assert "belongs to cluster red" in refused["msg"]


def test_questions_are_answered_as_data(results: Results) -> None:
    violated = results["ask for violated rules"]
    assert (violated["ok"], violated["changed"], violated["answer"]["kind"]) == (False, False, "violations")
    assert results["ask doctor"]["answer"]["kind"] == "doctor"
    assert results["ask whether all restart"]["ok"]
    (plan,) = results["ask for a plan"]["answer"]["clusters"]
    assert len(plan["steps"]) == 1
    assert not results["remove a group that another cluster has"]["changed"]
    unknown = results["ask for violated rules of a cluster that is not there"]
    assert 'no cluster "green"' in unknown["msg"]


def test_a_token_takes_the_place_of_the_password(results: Results) -> None:
    assert results["ask with a token"]["answer"]["kind"] == "violations"
    assert "refuses the token of OVIRT_TOKEN" in results["ask with a token that is none"]["msg"]


@pytest.mark.usefixtures("names")
def test_the_page_is_a_playbook(url: str, folder: Path, environment: dict[str, str]) -> None:
    """It runs after the playbook of all modules, whose rules and keys are there."""
    page = (CHECKOUT / "docs" / "ansible.md").read_text()
    playbook = folder / "page.yml"
    playbook.write_text(page.partition("```yaml\n")[2].partition("```")[0])
    where = {
        "OVIRT_PLACEMENT_CONFIG": str(folder / "placement.toml"),
        "PATH": f"{COMMANDS}:{environ['PATH']}",
    }
    done = play(str(playbook), url, folder, more=environment | where)
    assert [one["changed"] for one in done.values()] == [True, True, True, False, False]


def test_the_collection_is_built(tmp_path: Path) -> None:
    galaxy = Path(sys.executable).with_name("ansible-galaxy")
    command = [galaxy, "collection", "build", COLLECTION, "--output-path", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert [file.name for file in tmp_path.iterdir()] == ["ovirt_placement-core-1.0.0.tar.gz"]


def test_the_collection_is_fit_for_production(tmp_path: Path) -> None:
    """By the profile that the collection's own file names."""
    place = tmp_path / "ansible_collections" / "ovirt_placement" / "core"
    shutil.copytree(COLLECTION, place)
    subprocess.run(["git", "init", "--quiet", place], check=True, timeout=60)
    subprocess.run(["git", "-C", place, "add", "--all"], check=True, timeout=60)
    found = {
        "ANSIBLE_COLLECTIONS_PATH": str(tmp_path), "ANSIBLE_HOME": str(tmp_path / "home"),
        "HOME": str(tmp_path), "PATH": f"{COMMANDS}:{environ['PATH']}",
    }  # fmt: skip
    done = subprocess.run(
        [COMMANDS / "ansible-lint", "--offline", "--nocolor", "--strict"],
        cwd=place,
        env=dict(environ) | found,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Profile 'production' was required, and it passed" in done.stdout + done.stderr
