"""The API of a simulated engine: from a request by a user who is logged in to its answer."""

from __future__ import annotations

import logging
import re
from urllib.parse import unquote

from werkzeug import Request, Response
from werkzeug.exceptions import MethodNotAllowed, NotFound
from werkzeug.routing import MapAdapter

from ovirt_simulator.core import rejections
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.http import answers, limits, markup, restricted
from ovirt_simulator.http.cache import RenderCache
from ovirt_simulator.http.call import Call
from ovirt_simulator.http.links import Follow, FollowError
from ovirt_simulator.http.log_ins import Sessions
from ovirt_simulator.http.render.root import COLLECTIONS
from ovirt_simulator.http.table import Answer, routes
from ovirt_simulator.http.users import User

_LOG = logging.getLogger(__name__)


class Api:
    """Answers requests below /ovirt-engine/api out of an engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._cache = RenderCache()
        self._sessions = Sessions(engine)
        self._adapter: MapAdapter = routes().bind("")

    def answer(self, request: Request, path: str, user_name: str, user: User) -> Response:
        """Answer a request; `path` is what follows /ovirt-engine/api."""
        self._sessions.note(request, user_name)
        plain, matrix = _without_matrix(path)
        call = Call(self._engine, request, user_name, user, self._expand, self._cache, plain, matrix)
        response = self._guarded(call, request, plain)
        response.headers["Correlation-Id"] = call.correlation_id
        return response

    def _guarded(self, call: Call, request: Request, path: str) -> Response:
        """Answer, with every way of failing turned into the answer that the engine has for it."""
        try:
            return self._dispatch(call, request, path)
        except answers.Refusal as refusal:
            return refusal.response
        except rejections.Rejected as rejected:
            return answers.fault(rejected.http_status, rejected.detail).response
        except rejections.NotFound as missing:
            return answers.fault(404, str(missing)).response
        except NotFound:
            if path.strip("/").partition("/")[0] in COLLECTIONS:
                return answers.not_simulated(f"{request.method} of {path}").response
            return answers.absent().response
        except MethodNotAllowed:
            return answers.not_simulated(f"{request.method} of {path}").response
        except FollowError as error:
            _LOG.info("%s %s: %s", request.method, request.full_path, error)
            return answers.page(500, "java.lang.IllegalStateException")

    def _dispatch(self, call: Call, request: Request, path: str) -> Response:
        path, method = re.sub("/+", "/", path) or "/", request.method
        if method == "OPTIONS":
            return answers.options(self._adapter.allowed_methods(path))
        resource, arguments, pattern = self._match(path, method)
        method = "GET" if method == "HEAD" else method
        limits.check_parameters(method, pattern, call.parameter)
        if method == "GET":
            restricted.check_reading(call, pattern)
        result = resource.answer(call, **arguments)
        if isinstance(result, Response):
            return result
        _check_followed(call, result, pattern)
        if resource.root is None:
            return answers.document(result)
        return answers.document(markup.collection(resource.root, _at_most(result, call.number("max"))))

    def _expand(self, call: Call, address: str, tag: str, follow: Follow) -> str:
        """Render what an entity links to, under the name that the entity has for it."""
        try:
            resource, arguments, _ = self._match(unquote(address.removeprefix(markup.API)), "GET")
            below = call.below(follow)
            result = resource.answer(below, **arguments)
        except NotFound:
            raise answers.not_simulated(f"what is at {address}") from None
        except answers.Refusal as missing:
            if missing.response.status_code == 501:
                raise
            raise FollowError(f"{address}: {missing}") from missing
        _check_followed(below, result, address)
        return result if resource.root is None else markup.collection(tag, result)

    def _match(self, path: str, method: str) -> tuple[Answer, dict[str, str], str]:
        """Give the resource at a path, what it is asked with, and the pattern of its address."""
        rule, arguments = self._adapter.match(path, method, return_rule=True)
        return rule.endpoint, dict(arguments), rule.rule


def _check_followed(call: Call, result: str | list[str], address: str) -> None:
    """Refuse to follow what nobody looked at: an answer that is rendered without its links."""
    if call.follow and result and not call.linked:
        raise answers.not_simulated(f"what can be followed at {address}")


def _without_matrix(path: str) -> tuple[str, dict[str, str]]:
    """Take the parameters out of a path, `/vms;max=2`; those behind its last step count."""
    steps = [step.split(";") for step in path.split("/")]
    pairs = (parameter.partition("=") for parameter in steps[-1][1:])
    return "/".join(step[0] for step in steps), {name: value for name, _, value in pairs}


def _at_most(items: list[str], limit: int | None) -> list[str]:
    """Cut any list to the `max` that the request asks for; -1 asks for none."""
    if limit is None or limit == -1:
        return items
    if limit < 0:
        raise answers.fault(500, f"fromIndex(0) > toIndex({limit})")
    return items[:limit]
