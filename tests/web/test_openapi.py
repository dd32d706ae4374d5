"""What `/api/v1` describes of itself, against what it answers, by schemathesis: asked well and wrongly."""

import os

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import ignored_auth

from tests.examples import examples
from tests.web.running import HOSTILE, ROOT, Page

#: Whatever is drawn, some of it names something: by name and by id.
NAMED = st.sampled_from(["a", "db-1", "big", "x", HOSTILE, "h1", "alpha", "c1", "c2"])
QUERIES = st.sampled_from([{"cluster": "c1"}, {"cluster": "c2"}, {"cluster": "c1", "hosts": "h1,beta"}])


@pytest.fixture(scope="module")
def schema(page: Page) -> schemathesis.BaseSchema:
    return schemathesis.openapi.from_url(f"{page.origin}{ROOT}/api/v1/openapi.json")


@pytest.mark.system
@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=["well", "wrongly"])
def test_programs_get_what_is_described(
    page: Page, schema: schemathesis.BaseSchema, mode: GenerationMode
) -> None:
    token = page.server.tokens.log_in("admin@internal", "password")
    known = mode is GenerationMode.POSITIVE
    for found in schema.get_all_operations():
        operation = found.ok()

        @settings(
            max_examples=examples(20),
            derandomize=bool(os.environ.get("CI")),
            suppress_health_check=list(HealthCheck),
        )
        @given(operation.as_strategy(generation_mode=mode), NAMED, QUERIES, st.booleans())
        def ask(case: schemathesis.Case, name: str, query: dict[str, str], named: bool) -> None:
            if named and known:
                case.path_parameters = dict.fromkeys(case.path_parameters or {}, name)
                keys = {one.name for one in case.operation.query}
                case.query = {key: value for key, value in query.items() if key in keys}
            # One that is drawn is of another server, which answers 421.
            case.headers = {key: value for key, value in case.headers.items() if key.lower() != "host"}
            # Without a token: after five tries the answer is 429, which test_statements.py is about.
            case.call_and_validate(
                headers={"Authorization": f"Bearer {token}"}, excluded_checks=[ignored_auth]
            )

        ask()
