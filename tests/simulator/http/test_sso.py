"""Logging in, staying logged in, and what happens when one is not."""

import json
from contextlib import closing
from urllib.parse import urlencode

import pytest
from ovirtsdk4 import Connection, Error

from ovirt_simulator.core.engine import Engine
from ovirt_simulator.http.control import LoginError, Tokens, default_users
from ovirt_simulator.http.server import Server, serve
from tests.simulator.http.conftest import logged_in
from tests.simulator.http.plain import Api, Reply, request


def post(server: Server, path: str, **form: str) -> Reply:
    headers = {"Accept": "application/json", "Content-Type": "application/x-www-form-urlencoded"}
    return request(f"{server.url}/ovirt-engine/{path}", "POST", urlencode(form), user=None, headers=headers)


def log_in(server: Server, **fields: str) -> Reply:
    form = {"grant_type": "password", "scope": "ovirt-app-api", "username": "admin@internal"}
    return post(server, "sso/oauth/token", **{**form, "password": "password", **fields})


def test_a_token(server: Server, api: Api) -> None:
    reply = log_in(server)
    answer = json.loads(reply.body)
    assert (reply.status, reply.headers["content-type"]) == (200, "application/json")
    assert set(answer) == {"access_token", "scope", "exp", "token_type"}
    assert answer["exp"].isdecimal()
    bearer = {"Authorization": f"Bearer {answer['access_token']}"}
    assert api("vms", user=None, headers=bearer).status == 200


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        (
            {"password": "wrong"},
            "Cannot authenticate user 'admin@internal': Unable to log in. Verify your login information",
        ),
        ({"username": "nobody@internal"}, "Cannot authenticate user 'nobody@internal'"),
        ({"username": "admin@elsewhere"}, "No valid profile found in credentials."),
        ({"username": "admin"}, "No profile found in credentials."),
    ],
)
def test_an_error_is_400_in_the_apis_spelling(server: Server, fields: dict[str, str], text: str) -> None:
    reply = log_in(server, **fields)
    answer = json.loads(reply.body)
    assert (reply.status, answer["error_code"]) == (400, "access_denied")
    assert text in answer["error"]


def test_a_token_expires_when_it_is_idle_for_its_life_time(engine: Engine) -> None:
    hands = [0.0]
    tokens = Tokens(default_users("secret"), lifetime=100.0, clock=lambda: hands[0])
    token = tokens.log_in("admin@internal", "secret")
    for hands[0] in (99.0, 198.0, 297.9):
        assert tokens.user(token) is not None, "each use renews it"
    hands[0] = 398.0
    assert tokens.user(token) is None
    hands[0] = 300.0
    assert tokens.user(token) is None, "and it does not come back"
    with pytest.raises(LoginError):
        tokens.log_in("admin@internal", "Secret")


def test_a_life_time_of_nothing_ends_every_call(engine: Engine) -> None:
    """The retry is 401 again, with the container's page: the SDK cannot read it."""
    with closing(serve(engine, token_lifetime=0.0)) as server, closing(logged_in(server)) as connection:
        vms = connection.system_service().vms_service()
        with pytest.raises(Error, match="text/html") as caught:
            vms.list()
    assert (type(caught.value), caught.value.code) == (Error, None)


def test_logout_ends_the_token(server: Server, api: Api, sdk: Connection) -> None:
    token = sdk.authenticate()
    for _ in range(2):
        reply = post(server, "services/sso-logout", scope="ovirt-app-api", token=token)
        assert (reply.status, json.loads(reply.body)) == (200, {})
    bearer = {"Authorization": f"Bearer {token}"}
    assert api("vms", user=None, headers=bearer).status == 401


@pytest.mark.parametrize("user", [None, "admin@internal:wrong", "nobody:password"])
def test_401_is_the_containers(api: Api, user: str | None) -> None:
    reply = api("vms", user=user)
    assert reply.status == 401
    assert reply.headers["www-authenticate"] == 'Basic realm="RESTAPI"'
    assert reply.headers["content-type"] == "text/html;charset=UTF-8"
    assert b"<html>" in reply.body
