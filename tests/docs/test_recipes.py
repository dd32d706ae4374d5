"""The recipes of `docs/recipes.md` that need more than a command: alerts, two engines, the way back."""

import os
import re
import shlex
import socketserver
import sqlite3
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from email import message_from_string
from pathlib import Path

import msgspec
import pytest
import yaml

from ovirt_enforcer.log import Notice, NoticeKind
from ovirt_enforcer.notifications import NotDelivered, Webhook, alerts_of
from ovirt_enforcer.service.metrics import EnforcerMetrics
from ovirt_enforcer.settings import NotificationSettings
from ovirt_placement.cli.main import main
from ovirt_placement.engine.connection.exchanges import Trust, ask_once
from ovirt_placement.model import AffinityRule, PlacementKey
from ovirt_placement.store.keys import KeyStore
from ovirt_placement.store.sql.schema import VERSION
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.http.server import serve
from tests.builders import APART, TOGETHER, cluster, group, host, snapshot, vm
from tests.configuration import write_configuration
from tests.docs.shown import fenced, printed, section
from tests.enforcer.notifications.conftest import receiving
from tests.paths import CHECKOUT
from tests.scenarios.stage import START
from tests.stored import put_keys

FOLDER = CHECKOUT / "docs" / "recipes"
MAIL_AND_SLACK, ALERTMANAGER = "Alerts by mail and in Slack", "Alerts in Alertmanager"
TWO_ENGINES, WAY_BACK = "Two engines at a glance", "Back to the version before"


def recipe(title: str) -> str:
    return section(FOLDER.with_suffix(".md"), title)


class MailServer(socketserver.ThreadingTCPServer):
    """Takes mail as SMTP has it; `refuses` says that it is busy."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _MailConnection)
        self.mails: list[tuple[str, str]] = []
        self.refuses = False


class _MailConnection(socketserver.StreamRequestHandler):
    server: MailServer

    def handle(self) -> None:
        self._say("421 busy" if self.server.refuses else "220 here")
        to = ""
        for line in iter(self.rfile.readline, b""):
            command = line.decode().strip()
            verb = command[:4].upper()
            if verb == "RCPT":
                to = command.partition("<")[2].rstrip(">")
            if verb == "DATA":
                self._say("354 go on")
                lines = iter(lambda: self.rfile.readline().decode().rstrip("\r\n"), ".")
                self.server.mails.append((to, "\n".join(lines)))
            self._say("221 bye" if verb == "QUIT" else "250 ok")

    def _say(self, text: str) -> None:
        self.wfile.write(f"{text}\r\n".encode())


def command_of_the_unit() -> list[str]:
    unit = (FOLDER / "ovirt-placement-relay.service").read_text().replace("\\\n", " ")
    (line,) = (line for line in unit.splitlines() if line.startswith("ExecStart="))
    python, script, *options = shlex.split(line.removeprefix("ExecStart="))
    assert (python, script.split("/docs/")[1]) == ("/usr/bin/python3.12", "recipes/relay.py")
    return options


@contextmanager
def relaying(mail: MailServer, slack_file: Path) -> Iterator[str]:
    """The relay as its unit starts it, but for what is of this machine; its URL."""
    options = command_of_the_unit()
    for option, value in {
        "--port": "0",
        "--smtp-host": "127.0.0.1",
        "--smtp-port": str(mail.server_address[1]),
        "--slack-url-file": str(slack_file),
    }.items():
        options[options.index(option) + 1] = value
    command = [sys.executable, str(FOLDER / "relay.py"), *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            yield process.stdout.readline().split()[-1]
        finally:
            process.terminate()


def settings(title: str, url: str) -> NotificationSettings:
    """What the page says, with another URL."""
    (text,) = fenced(recipe(title), "toml")
    found = tomllib.loads(text)["enforcer"]["notifications"]
    found["webhook"]["url"] = url
    return msgspec.convert(found, NotificationSettings)


def notice(kind: NoticeKind) -> Notice:
    facts = {fact: f"the {fact}" for fact in kind.facts} | {"engine": "default"}
    return Notice(kind, facts)


def sentence(found: NotificationSettings, kind: NoticeKind) -> str:
    return found.sentence(kind, notice(kind).facts)


@pytest.fixture
def mail() -> Iterator[MailServer]:
    with MailServer() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def test_an_alert_comes_as_mail_and_in_slack_and_so_does_its_end(tmp_path: Path, mail: MailServer) -> None:
    slack_file = tmp_path / "slack-url"
    with receiving() as slack:
        slack_file.write_text(f"http://127.0.0.1:{slack.port}/services/T/B/secret\n")
        with relaying(mail, slack_file) as url:
            found = settings(MAIL_AND_SLACK, url)
            channel = Webhook(found.webhook, found.sentence)
            for kind in (NoticeKind.ENGINE_AWAY, NoticeKind.ENGINE_BACK):
                assert kind in found.webhook.kinds
                channel.send(notice(kind))
    (to, begun), (_, ended) = mail.mails
    message = message_from_string(begun)
    line = f"[error] {sentence(found, NoticeKind.ENGINE_AWAY)}"
    assert (to, message["To"], message["From"]) == (
        "admins@example.com",
        "admins@example.com",
        "placement@example.com",
    )
    assert (message["Subject"], str(message.get_payload()).strip()) == (f"ovirt-placement: {line}", line)
    over = f"[over] {sentence(found, NoticeKind.ENGINE_BACK)}"
    assert str(message_from_string(ended).get_payload()).strip() == over
    assert [one.alerts for one in slack.received] == [{"text": line}, {"text": over}]
    assert all("content-type: application/json" in one.head.lower() for one in slack.received)


@pytest.mark.parametrize("away", ["mail", "slack"])
def test_a_receiver_that_is_away_is_asked_again(tmp_path: Path, mail: MailServer, away: str) -> None:
    slack_file = tmp_path / "slack-url"
    with receiving() as gone:
        slack_file.write_text(f"http://127.0.0.1:{gone.port}/")
    mail.refuses = away == "mail"
    with relaying(mail, slack_file) as url:
        channel = Webhook(settings(MAIL_AND_SLACK, url).webhook, lambda kind, facts: "a sentence")
        with pytest.raises(NotDelivered, match="502"):
            channel.send(notice(NoticeKind.HA_ALERT))


def test_what_is_no_alert_is_refused(tmp_path: Path, mail: MailServer) -> None:
    slack_file = tmp_path / "slack-url"
    slack_file.write_text("http://127.0.0.1:1/")
    with relaying(mail, slack_file) as url:
        answers = [
            ask_once(url, body, {}, trust=Trust(None, insecure=False), seconds=10.0).status
            for body in (b"[]", b"[{}]", b"no JSON")
        ]
    assert answers == [200, 400, 400]
    assert mail.mails == []


def test_alertmanager_routes_by_labels_and_names_that_alerts_have() -> None:
    (text,) = fenced(recipe(ALERTMANAGER), "yaml")
    found = yaml.safe_load(text)
    alerts = [alert["labels"] for kind in NoticeKind for alert in alerts_of(notice(kind), "it happened")]
    labels = {label for alert in alerts for label in alert}
    (route,) = found["route"]["routes"]
    matched = dict(matcher.replace("=~", "=").split("=", 1) for matcher in route["matchers"])
    assert {*matched, *found["route"]["group_by"]} <= labels
    assert set(matched["alertname"].strip('"').split("|")) <= {alert["alertname"] for alert in alerts}
    assert {alert["service"] for alert in alerts} == {matched["service"].strip('"')}
    receivers = {receiver["name"] for receiver in found["receivers"]}
    assert {found["route"]["receiver"], route["receiver"]} == receivers
    url = tomllib.loads(fenced(recipe(ALERTMANAGER), "toml")[0])["enforcer"]["notifications"]["webhook"][
        "url"
    ]
    assert settings(ALERTMANAGER, url).webhook.url.endswith("/api/v2/alerts")


@contextmanager
def engines(folder: Path, rules: dict[str, AffinityRule]) -> Iterator[None]:
    """An engine of each name, whose two VMs run on two hosts and have this rule; their configurations."""
    with ExitStack() as servers:
        for name, rule in rules.items():
            state = snapshot(
                cluster("c", name=f"{name}-1"),
                *(host(one, cluster="c") for one in ("node1", "node2")),
                vm("db1", "node1", cluster="c"),
                vm("db2", "node2", cluster="c"),
                group("pair", rule, "db1 db2", cluster="c"),
            )
            server = servers.enter_context(closing(serve(Engine.from_snapshot(state, clock=START))))
            (folder / name).mkdir()
            made = write_configuration(folder / name, server.api_url, engine=f'name = "{name}"')
            (folder / f"{name}.toml").write_text(made.read_text())
        yield


def ask(folder: Path, *question: str) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return subprocess.run(
        ["sh", FOLDER / "all-engines.sh", *question],
        env={**os.environ, "PATH": path, "OVIRT_PLACEMENT_CONFIGURATIONS": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.system
def test_each_engine_answers_and_one_that_is_not_well_is_the_exit_status(tmp_path: Path) -> None:
    ((command, expected),) = printed(fenced(recipe(TWO_ENGINES)))
    *_, script, question = command.split()
    assert Path(script) == Path("/usr/share/doc/ovirt-placement/docs/recipes/all-engines.sh")
    with engines(tmp_path, {"east": APART, "west": TOGETHER}):
        asked = ask(tmp_path, question)
        (tmp_path / "west.toml").unlink()
        alone = ask(tmp_path, question)
    assert asked.stdout.splitlines() == expected, asked.stderr
    assert (asked.returncode, alone.returncode) == (1, 0)


def test_the_queries_ask_for_metrics_with_their_labels() -> None:
    metrics = EnforcerMetrics(engine="east")
    known = {}
    for family in metrics.registry.collect():
        total = "_total" if family.type == "counter" else ""
        known[f"{family.name}{total}"] = family
    asked = set(re.findall(r"ovirt_placement_enforcer_\w+", recipe(TWO_ENGINES)))
    assert len(asked) == 4
    assert asked <= known.keys()
    assert "result" in metrics.migrations._labelnames


KEY = PlacementKey(level="cluster", resource="c1", key_class="be", name="A", value=1.0, weight=1.0)

#: A release that comes after this one: its store has one version more.
NEXT = """
import sys
from ovirt_placement.store.sql import database, schema
schema.VERSION = database.VERSION = schema.VERSION + 1
from ovirt_placement.store import backup
backup.VERSION = schema.VERSION
from ovirt_placement.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path))
    made = write_configuration(tmp_path, "http://127.0.0.1:1/ovirt-engine/api")
    monkeypatch.setenv("OVIRT_PLACEMENT_CONFIG", str(made))
    return made


def of_the_next_release(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", NEXT, *arguments], capture_output=True, text=True)


@pytest.mark.system
def test_the_way_there_and_back(config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = f"sqlite:///{tmp_path}/store.db"
    keys = KeyStore(url, engine="default", patience_seconds=5)
    put_keys(keys, [KEY])
    keys.close()
    typed = "".join(fenced(recipe(WAY_BACK), "console")).splitlines()
    # As root, at their places.
    back_up, restore = (line.split()[1:] for line in typed if line.startswith("# ovirt-placement store"))
    backup = tmp_path / Path(back_up[-1]).name
    assert main([*back_up[1:-1], str(backup)]) == 0

    # The next release takes over, and this one leaves its store alone.
    with closing(sqlite3.connect(tmp_path / "store.db")) as database, database:
        database.execute("UPDATE schema_version SET version = version + 1")
    capsys.readouterr()
    assert main(["store", "backup", str(tmp_path / "late.backup")]) == 2
    (line,) = fenced(recipe(WAY_BACK))
    said = line.strip().replace("/var/lib/ovirt-placement", str(tmp_path))
    numbers = {"version 2": f"version {VERSION + 1}", "knows 1:": f"knows {VERSION}:"}
    for shown_number, number in numbers.items():
        said = said.replace(shown_number, number)
    assert capsys.readouterr().err.strip() == said

    # Its backups are for it alone.
    assert of_the_next_release("store", "backup", str(tmp_path / "next.backup")).returncode == 0
    assert main(["store", "restore", str(tmp_path / "next.backup"), "--replace"]) == 2
    assert f"schema version {VERSION + 1}, and this release has {VERSION}" in capsys.readouterr().err

    # Back: the store is put aside with all that belongs to it, and what was in the backup is there again.
    (tmp_path / "store.db-wal").write_bytes(b"of a service that was killed")
    assert restore[1:] == ["store", "restore", back_up[-1], "--replace"]
    assert main(["store", "restore", str(backup), "--replace"]) == 0
    assert len(list(tmp_path.glob("store.db.2*Z"))) == 1
    again = KeyStore(url, engine="default", patience_seconds=5)
    assert [found.key for found in again.all_keys()] == [KEY]
    again.close()
