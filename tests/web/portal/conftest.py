"""One portal for all tests of this room."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests.web.conftest import STATE
from tests.web.portal.serving import Portal, portal
from tests.web.running import PATIENCE_SECONDS


@pytest.fixture(scope="package")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Portal]:
    with portal(tmp_path_factory.mktemp("portal"), STATE) as found:
        expect.set_options(timeout=PATIENCE_SECONDS * 1000)
        yield found
        expect.set_options(timeout=5000)  # playwright's own
