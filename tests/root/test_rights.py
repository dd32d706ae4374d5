"""Root's commands: none of them creates, opens or changes a file of the services by the rights of root."""

import json
import os
import re
import sys
from pathlib import Path

import pytest

from ovirt_placement.store.orders import PauseStore
from tests.paths import CHECKOUT
from tests.placement.cli.live_engine import Starting
from tests.placement.cli.test_changing_commands import CASES, ENFORCER, STATE, Case, Stage, leaves
from tests.proxy.running import running, write_plugins
from tests.root.conftest import GROUP, OWNER, Root, close_to_others

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("root")]

#: What changes nothing by itself, and reads the store or what is published all the same.
OTHERS = tuple(
    Case(f"{command} {subcommand}", arguments)
    for command, arguments, subcommands in (
        ("ovirt-placement", (), "snapshot, status, doctor, violations, conflicts, inventory run"),
        ("ovirt-placement", (), "keys list, keys check, keys export, groups list, groups export"),
        ("ovirt-placement", (), "rules list, rules check, rules export"),
        ("ovirt-placement", ("web1",), "why, where, keys show, keys explain"),
        ("ovirt-placement", ("--cluster", "blue"), "ha-check"),
        ("ovirt-placement", ("--maintenance", "north"), "what-if"),
        ("ovirt-placement", ("none",), "rules show"),
        ("ovirt-placement", ("{of_root}/of-root.backup",), "store backup"),
        ("ovirt-placement", ("{folder}/of-services.backup",), "store backup"),
        ("ovirt-enforcer", (), "status, plan, simulate-policy, history, maintenance status, run"),
        ("ovirt-enforcer", ("web1",), "make-room, why-not"),
        ("ovirt-enforcer", ("none",), "undo"),
        ("ovirt-enforcer", ("south",), "maintenance plan"),
        ("ovirt-placement-web", (), "run"),
    )
    for subcommand in subcommands.split(", ")
)
#: What these name is not there, or runs already.
REFUSED = ("ovirt-placement rules show", "ovirt-enforcer make-room", "ovirt-enforcer undo")
#: The user that root becomes starts another interpreter, which must not be root's alone.
STARTS_INTERPRETERS = ("ovirt-enforcer run", "ovirt-placement-web run")
INTERPRETER_IS_OPEN = all(folder.stat().st_mode & 0o001 for folder in Path(sys.executable).resolve().parents)
MORE = ENFORCER + '[web]\nlisten = "127.0.0.1:0"\n'


def words_of(case: Case, stage: Stage, file: str | None) -> list[str]:
    given = (
        one.format(file=file, folder=stage.folder, of_root=stage.folder.parent) for one in case.arguments
    )
    return [*case.command.split(), *given, "--config", str(stage.live.config)]


EVERY = (*CASES, *OTHERS)


@pytest.mark.parametrize("case", EVERY, ids=[f"{at} {case.command}" for at, case in enumerate(EVERY)])
def test_nothing_is_opened_or_changed_by_roots_rights(
    case: Case, traced_root: Root, starting: Starting, tmp_path: Path
) -> None:
    folder = tmp_path / "services"
    folder.mkdir()
    with starting(STATE, more=MORE) as live:
        stage = Stage(live, folder)
        live.config.write_text(live.config.read_text().replace(f"{tmp_path}", f"{folder}"))
        file = case.before(stage)
        if case in OTHERS:
            PauseStore(stage.url, engine="default").pauses()
        close_to_others(live, folder)
        status = traced_root.run(*words_of(case, stage, file))
    if case.command not in STARTS_INTERPRETERS or INTERPRETER_IS_OPEN:
        assert status in ((2,) if case.command in REFUSED else (0, 1, 3)), traced_root.said
    assert roots_doings(traced_root, folder) == []
    for made in folder.glob("store.db*"):
        found = made.stat()
        assert (found.st_uid, found.st_gid, found.st_mode & 0o777) == (OWNER, GROUP, 0o660), made


def test_every_command_is_tried_but_the_proxys_and_the_simulators() -> None:
    """The proxy has neither store nor inventory, and its folders a test of their own."""
    every = {parser.prog for parser in leaves()}
    others = {one for one in every if one.startswith(("ovirt-scheduler-proxy ", "ovirt-simulator "))}
    assert {case.command for case in EVERY} == every - others


def test_what_root_does_in_a_folder_of_its_own_is_seen(
    traced_root: Root, starting: Starting, tmp_path: Path
) -> None:
    """Else the test above would find nothing whatever root does."""
    with starting(STATE, more=MORE) as live:
        assert traced_root.run("ovirt-enforcer", "pause", "--config", str(live.config)) == 0
    assert any("store.db" in line for line in roots_doings(traced_root, tmp_path))


@pytest.mark.parametrize("named", [True, False])
def test_the_proxy_runs_even_if_it_does_not_answer_the_services_user(
    root: Root, starting: Starting, tmp_path: Path, named: bool
) -> None:
    """Root asks it as that user, who is not the one that a proxy of an installation knows by name."""
    services = tmp_path / "services"
    services.mkdir()
    users = f"[server]\nallowed_users = {[str(OWNER)] if named else []}\n"
    plugins = write_plugins(
        tmp_path / "plugins", units="class Keep:\n    def do_filter(self, hosts, vm, args): 0\n"
    )
    with starting(STATE) as live, running(plugins, config=users) as proxy:
        live.config.write_text(live.config.read_text().replace(f"{tmp_path}", f"{services}"))
        close_to_others(live, services)
        config = ("--json", "--config", str(live.config))
        root.run("ovirt-placement", "doctor", "--proxy", proxy.url, *config)
        doctor, _ = json.JSONDecoder().raw_decode(root.said)  # warnings follow
        settings = tmp_path / "proxy.toml"
        settings.write_text(f'[server]\nlisten = "127.0.0.1:{proxy.port}"\n')
        root.run("ovirt-placement", "status", *config, OVIRT_SCHEDULER_PROXY_CONFIG=str(settings))
        status, _ = json.JSONDecoder().raw_decode(root.said)
    assert "proxy_not_reached" not in {one["kind"] for one in doctor["findings"]}
    assert "the proxy does not answer" not in status["reasons"]
    if named:
        assert "units_not_offered" in {one["kind"] for one in doctor["findings"]}, "they were compared"
        assert status["proxy"]["units"] == ["Keep"]
    else:
        said = "it answers root and the users that [server] allowed_users of its configuration names"
        assert f"the proxy: {said}" in doctor["not_examined"]
        assert status["proxy"]["error"] == said


@pytest.mark.parametrize("command", ["run", "check"])
def test_no_code_and_no_log_of_others_is_the_proxys_with_roots_rights(
    root: Root, tmp_path: Path, command: str
) -> None:
    """Who may write in a folder of plugins or of logs may have root run code, or write through a link."""
    victim, logs = tmp_path / "victim", tmp_path / "logs"
    victim.mkdir(mode=0o700)
    logs.mkdir()
    (logs / "proxy.log").symlink_to(victim / "ld.so.preload")
    seen = logs / "seen"
    plugins = write_plugins(
        tmp_path / "plugins", units=f"import os\nopen({str(seen)!r}, 'a').write(f'{{os.geteuid()}} ')\n"
    )
    for folder in (logs, plugins):
        os.chown(folder, OWNER, GROUP)
    settings = tmp_path / "proxy.toml"
    log = f'[log]\nfile = "{logs}/proxy.log"\n' if command == "run" else ""
    settings.write_text(f'{log}[server]\nlisten = "127.0.0.1:0"\n[[plugins]]\ndirectory = "{plugins}"\n')
    root.run("ovirt-scheduler-proxy", command, "--config", str(settings))
    assert list(victim.iterdir()) == []
    # The user of the services may not get on with an interpreter that is root's alone.
    assert not seen.exists() or {*seen.read_text().split()} == {str(OWNER)}


def test_packages_touch_nothing_in_the_services_folders() -> None:
    """rpm runs as root, and makes the folders themselves, whose parents are root's."""
    spec = (CHECKOUT / "packaging/rpm/ovirt-placement.spec.in").read_text()
    scriptlets, files = spec.split("\n%pre\n")[1].split("\n%files\n", 1)
    services = re.compile(r"_localstatedir|_rundir|/var/|/run/")
    assert not services.search(scriptlets)
    made = [line.split()[-1] for line in files.splitlines() if services.search(line)]
    assert made
    assert all(re.fullmatch(r"%\{_localstatedir\}/(lib|log)/[a-z-]+", one) for one in made), made


def roots_doings(root: Root, folder: Path) -> list[str]:
    """What was changed in the folder by root's rights, and what of the services was opened by them."""
    return [
        call.text
        for call in root.calls()
        if (call.writes and (str(folder) in call.given or "/proc/self/fd" in call.given))
        or (call.opens and any(f"{folder}/{name}" in call.given for name in ("store.db", "run")))
    ]
