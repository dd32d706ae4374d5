"""What all views share: the parts of the page, who asks, and how an answer becomes HTML."""

import logging
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

import jinja2
import msgspec
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from ovirt_placement.answers import placement
from ovirt_placement.answers.decisions import cut_text, decision_headers, decision_lines, decision_rows
from ovirt_placement.answers.decisions.at_time import distance, earlier_text, not_asked_lines
from ovirt_placement.answers.document import duration_text, fewest_text, listed, none_text, safe_word
from ovirt_placement.answers.keys import compiled
from ovirt_placement.answers.keys.change import keys_table
from ovirt_placement.answers.plans.maintenance import move_text, rest_text, summary_text
from ovirt_placement.answers.rules import asked, count_text, state_text, strength
from ovirt_placement.answers.status.clusters import FAMILIES, judge
from ovirt_placement.answers.status.health import status_lines
from ovirt_placement.config import Config
from ovirt_placement.engine.connection.failures import EngineAway
from ovirt_placement.engine.users import Refused, Rights, UserTokens, read_rights
from ovirt_placement.model.record import written
from ovirt_placement_web.bounds import Bounds, Refusal, Throttle, WebMetrics, sentence
from ovirt_placement_web.sessions import Bearers, Session, Sessions
from ovirt_placement_web.settings import WebSettings
from ovirt_placement_web.state.map import misplaced
from ovirt_placement_web.state.plans import MadePlans
from ovirt_placement_web.state.questions import Memory, Questions
from ovirt_placement_web.state.sources import LiveState, Past, View
from ovirt_service.text import escaped

_COOKIE = "__Secure-ovirt-placement"
_SESSION_IDLE_SECONDS = 1800.0
_LONGEST_WORD = 255
NO_ADMIN = "This page is for people with an admin role in the engine, as ReadOnlyAdmin."

_log = logging.getLogger(__name__)


class Site:
    def __init__(self, config: Config, root: str, settings: WebSettings, metrics: WebMetrics) -> None:
        self.config = config
        self.name, self.root = config.engine.name, root
        label = config.engine.label
        #: Each engine has another one, as the path of one is below another's.
        self.cookie = f"{_COOKIE}-{label}" if label else _COOKIE
        self.settings = msgspec.structs.replace(settings, root=root)
        #: Those of all engines that the page shows, this one's included.
        self.places: Sequence[Site] = (self,)
        self.live = LiveState(config)
        self.sessions = Sessions(_SESSION_IDLE_SECONDS)
        self.bounds = Bounds(metrics, streams=settings.streams, streams_each=settings.streams_per_session)
        self.throttle = Throttle(metrics)
        self.tokens = UserTokens(config.engine)
        self.bearers = Bearers(self.tokens, self.bounds)
        self.past = Past(config)
        self.memory = Memory()
        self._decisions = config.section("web", WebSettings).decisions
        self.made = MadePlans(config)
        #: The engine does not compare before it changes: of two users at once the second one has to.
        self.editing = Lock()
        self.templates = environment()

    def questions(self, view: View) -> Questions:
        record = Path(self._decisions) if self._decisions else None
        return Questions(self.config, self.past, self.memory, view, record)

    def cookie_of(self, request: Request) -> str | None:
        return request.cookies.get(self.cookie)

    def session(self, request: Request, *, use: bool = True) -> Session | None:
        """The session of who asks; raises `Refusal` where they have no admin role any more."""
        found = self.sessions.find(self.cookie_of(request), use=use)
        if found is not None and not found.rights.administrator:
            raise Refusal(403, NO_ADMIN)
        return found

    def knows(self, request: Request) -> bool:
        """Whether a user asks who is logged in and may read; that is no use of the session."""
        found = self.sessions.find(self.cookie_of(request), use=False)
        return found is not None and found.rights.administrator

    async def read_rights_again(self, session: Session) -> None:
        """Ask the engine what a person may do now; nothing follows from its silence."""
        try:
            rights = await self.bounds.rights.run(session, self._rights_now, session)
        except (EngineAway, Refusal):
            return
        except Exception:
            _log.exception("the rights of a session could not be read")
            return
        if rights is None:
            self.sessions.end(session)
        else:
            session.change(rights)

    def _rights_now(self, session: Session) -> Rights | None:
        """None once the engine takes the token no more. Who may not even read their roles has none."""
        try:
            return read_rights(self.tokens, session.token)
        except Refused:
            if not self.tokens.is_valid(session.token):
                return None
            return replace(session.rights, administrator=False, permits={})

    def page(
        self, request: Request, template: str, *, status: int = 200, view: View | None = None, **shown: Any
    ) -> HTMLResponse:
        """Render a page; nothing in it is markup but what templates say."""
        known = view or self.live.view
        where = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        text = self.templates.get_template(template).render(
            root=self.root,
            here=where,
            path=request.url.path.removeprefix(self.root),
            session=self.sessions.find(self.cookie_of(request), use=False),
            framed=is_framed(request),
            view=known,
            engine=self.config.engine,
            error_text=error_text,
            true_at=instant(datetime.now(UTC).timestamp() - known.age_seconds),
            **{"part": "", "crumbs": (), "tab": "", "preview": None, **shown},
        )
        return HTMLResponse(text, status)


def error_text(error: str | None) -> str:
    """Why nothing newer is known, as a sentence without what its readers know."""
    text = re.sub(r"^no (fresh )?snapshot( in time)?: |; the last one is [^;]*$", "", error or "")
    text = re.sub(r"^https?://[^\s/]+: (the engine does not answer: )?", "", text)
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('?') else '.'}" if text else ""


def page_words(line: str) -> str:
    """A line of a command as the page says it: without marks of lists, commands and options.

    It is a sentence, but for what stands in a list: that may begin with a name.
    """
    text = re.sub(r"; see ovirt-[a-z -]+| \(ovirt-[^)]*\)", "", line.strip().removeprefix("- "))
    text = re.sub(r"--stop ([^\s,;]+)", r"\1 stopped", text)
    text = text.replace(" is non_responsive", " does not respond")
    return text if line.lstrip().startswith("- ") else f"{text[:1].upper()}{text[1:]}"


def site_of(request: Request) -> Site:
    site: Site = request.scope["site"]
    return site


def is_framed(request: Request) -> bool:
    """Whether the browser shows the answer in a frame, which only the engine's portal may do."""
    return request.headers.get("sec-fetch-dest") == "iframe"


def check_query(request: Request, allowed: Iterable[str], repeated: Iterable[str] = ()) -> None:
    """Refuse keys of the query that the view does not know, and those that stand twice and may not."""
    known, keys = frozenset(allowed), [key for key, _ in request.query_params.multi_items()]
    if unknown := [key for key in keys if key not in known]:
        raise Refusal(400, f'"{escaped(unknown[0])[:80]}" is no parameter of this address')
    single = [key for key in keys if key not in repeated]
    if len(single) != len(set(single)):
        raise Refusal(400, "a parameter stands twice in this address")


def number(request: Request, key: str, most: int) -> int:
    """A number of the query, from 1; 1 where it is not given. Raises `Refusal` for anything else."""
    word = request.query_params.get(key, "1")
    if re.fullmatch(r"[0-9]{1,6}", word) and 1 <= int(word) <= most:
        return int(word)
    raise Refusal(400, f"{key}: a number from 1 to {most}")


def words_of(text: str) -> tuple[str, ...]:
    """The lines of a field that have a word, each once."""
    return tuple(dict.fromkeys(word for line in text.split("\n") if (word := line.strip())))


def check_length(name: str, text: str) -> None:
    if len(text) > _LONGEST_WORD:
        raise Refusal(400, f"{name}: {_LONGEST_WORD} characters at most.")


def refused(request: Request, error: Refusal) -> Response:
    titles = {404: "Not found", 409: "Nothing was changed", 503: "Not available now"}
    title = titles.get(error.status, "Not possible")
    shown: dict[str, Any] = {"title": title, "text": error.text, "back": error.back}
    answer = site_of(request).page(request, "error.html", status=error.status, **shown)
    answer.headers.update(error.headers)
    return answer


@cache
def environment() -> jinja2.Environment:
    """Templates that escape all they are given, and show what could steer a reader by its code."""
    found = jinja2.Environment(
        loader=jinja2.PackageLoader("ovirt_placement_web"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    said = (
        *(instant, when, mib, plural, timed, page_words, sentence, listed, none_text, safe_word, fewest_text),
        *(decision_lines, decision_headers, decision_rows, cut_text, distance, earlier_text, not_asked_lines),
        *(compiled.vm_table, compiled.host_table, compiled.ratios_text, compiled.ignored_lines, status_lines),
        *(placement.after_text, placement.restart_text, placement.not_asked_text, written),
        *(move_text, rest_text, summary_text, misplaced, keys_table),
    )
    found.filters.update({one.__name__: one for one in said})
    found.filters.update(
        family=lambda name: FAMILIES.get(name, name),
        health=lambda one: judge(None, (), (one,), None, None)[0],
        rule_asks=asked,
        rule_vms=count_text,
        rule_strength=strength,
        rule_state=state_text,
        duration=duration_text,
    )
    return found


def instant(seconds: float) -> str:
    """Seconds since the epoch in ISO 8601."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def when(moment: float | str) -> Markup:
    """A moment that the reader's browser shows in its own zone; without it, in UTC."""
    iso = instant(moment) if isinstance(moment, float | int) else moment
    if iso.endswith(" UTC"):
        iso = f"{iso.removesuffix(' UTC')}+00:00"
    iso = iso.replace(" ", "T")
    text = iso.replace("T", " ").replace("+00:00", " UTC")
    return Markup('<time datetime="{}">{}</time>').format(iso, text)


def timed(line: str) -> Markup:
    parts = re.split(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC)", line)
    return Markup().join(when(part) if at % 2 else escaped(part) for at, part in enumerate(parts))


def mib(amount: int) -> str:
    for unit, size in (("TiB", 1024 * 1024), ("GiB", 1024)):
        if amount >= size:
            return f"{amount / size:.1f}".removesuffix(".0") + f" {unit}"
    return f"{amount} MiB"


def plural(count: int, one: str, many: str = "") -> str:
    return f"{count} {one if count == 1 else many or one + 's'}"


def _shown(value: object) -> object:
    """What others have named: without what is not to be seen, and without marks that turn a line round."""
    return escaped(value) if isinstance(value, str) and not isinstance(value, Markup) else value
