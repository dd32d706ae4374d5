"""Alerts by mail, in Slack and in Alertmanager: through the enforcer's own channel to servers here."""

from __future__ import annotations

import http.server
import json
import shlex
import socketserver
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_string
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from ovirt_enforcer.notifications.delivery import NotDelivered, Notice
from ovirt_enforcer.notifications.kinds import ABOUT, NoticeKind, NotificationSettings
from ovirt_enforcer.notifications.notifications import Webhook, alerts_of
from ovirt_placement.engine.connection.exchanges import Trust, ask_once
from tests.docs.recipes.page import FOLDER, blocks

MAIL_AND_SLACK, ALERTMANAGER = "Alerts by mail and in Slack", "Alerts in Alertmanager"
TRIES = 20


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


class Slack(http.server.ThreadingHTTPServer):
    """Takes what is posted."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _SlackRequest)
        self.posted: list[Any] = []


class _SlackRequest(http.server.BaseHTTPRequestHandler):
    server: Slack

    def do_POST(self) -> None:
        assert self.headers["Content-Type"] == "application/json"
        self.server.posted.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nobody reads it."""


@contextmanager
def served(server: socketserver.BaseServer) -> Iterator[None]:
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


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
    (text,) = blocks(title, "toml")
    found = tomllib.loads(text)["enforcer"]["notifications"]
    found["webhook"]["url"] = url
    return msgspec.convert(found, NotificationSettings)


def notice(kind: NoticeKind) -> Notice:
    facts = {fact: f"the {fact}" for fact in ABOUT[kind].facts} | {"engine": "default"}
    return Notice(kind, facts)


def sentence(found: NotificationSettings, kind: NoticeKind) -> str:
    return found.sentence(kind, notice(kind).facts)


@pytest.fixture
def mail() -> Iterator[MailServer]:
    server = MailServer()
    with served(server):
        yield server


def test_an_alert_comes_as_mail_and_in_slack_and_so_does_its_end(tmp_path: Path, mail: MailServer) -> None:
    slack, slack_file = Slack(), tmp_path / "slack-url"
    slack_file.write_text(f"http://127.0.0.1:{slack.server_address[1]}/services/T/B/secret\n")
    with served(slack), relaying(mail, slack_file) as url:
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
    assert message["Subject"] == f"ovirt-placement: {line}"
    assert str(message.get_payload()).strip() == line
    over = f"[over] {sentence(found, NoticeKind.ENGINE_BACK)}"
    assert str(message_from_string(ended).get_payload()).strip() == over
    assert slack.posted == [{"text": line}, {"text": over}]


@pytest.mark.parametrize("away", ["mail", "slack"])
def test_a_receiver_that_is_away_is_asked_again(tmp_path: Path, mail: MailServer, away: str) -> None:
    slack_file = tmp_path / "slack-url"
    gone = Slack()
    gone.server_close()
    slack_file.write_text(f"http://127.0.0.1:{gone.server_address[1]}/")
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
    (text,) = blocks(ALERTMANAGER, "yaml")
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
    url = tomllib.loads(blocks(ALERTMANAGER, "toml")[0])["enforcer"]["notifications"]["webhook"]["url"]
    assert settings(ALERTMANAGER, url).webhook.url.endswith("/api/v2/alerts")
