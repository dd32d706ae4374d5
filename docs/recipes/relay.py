#!/usr/bin/env python3
"""Takes alerts in Alertmanager's form, as ovirt-enforcer posts them, and passes them on as mail and to Slack.

What a receiver does not take is answered with 502: the enforcer then asks again for ten minutes.
"""

import argparse
import json
import smtplib
import urllib.request
from datetime import UTC, datetime
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


def sentences(alerts):
    """One line an alert: what lasts, or is over."""
    now = datetime.now(UTC)
    for alert in alerts:
        over = datetime.fromisoformat(alert["endsAt"]) <= now
        severity = "over" if over else alert["labels"]["severity"]
        yield f"[{severity}] {alert['annotations']['summary']}"


def mail(args, lines):
    message = EmailMessage()
    message["From"], message["To"] = args.mail_from, args.mail_to
    more = f" (and {len(lines) - 1} more)" if len(lines) > 1 else ""
    message["Subject"] = f"ovirt-placement: {lines[0]}"[:150] + more
    message.set_content("\n".join(lines))
    with smtplib.SMTP(args.smtp_host, args.smtp_port, timeout=10) as server:
        server.send_message(message)


def slack(args, lines):
    url = args.slack_url_file.read_text().strip()
    body = json.dumps({"text": "\n".join(lines)}).encode()
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})  # noqa: S310 - ours
    urllib.request.urlopen(request, timeout=10).close()  # noqa: S310 - ours


class Relay(BaseHTTPRequestHandler):
    def do_POST(self):
        try:
            alerts = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            lines = list(sentences(alerts))
        except (ValueError, KeyError, TypeError) as error:
            return self.send_error(400, str(error))
        try:
            if lines and self.server.args.mail_to:
                mail(self.server.args, lines)
            if lines and self.server.args.slack_url_file:
                slack(self.server.args, lines)
        except OSError as error:  # smtplib's and urllib's errors are such
            return self.send_error(502, str(error))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        return self.end_headers()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=9094, help="where it listens, on this machine alone")
    parser.add_argument("--smtp-host", default="localhost")
    parser.add_argument("--smtp-port", type=int, default=25)
    parser.add_argument("--mail-from", default="ovirt-placement@localhost")
    parser.add_argument("--mail-to", help="who gets mail; without it no mail is sent")
    parser.add_argument("--slack-url-file", type=Path, help="a file with the URL of an incoming webhook")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Relay, bind_and_activate=False)
    server.args = parser.parse_args()
    server.server_address = ("127.0.0.1", server.args.port)
    server.server_bind()
    server.server_activate()
    print(f"takes alerts at http://127.0.0.1:{server.server_port}/", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
