"""Record what commands and page answer today: `python -m tests.golden`.

After a change of words that is meant, look at what `git diff tests/data/golden` shows.
"""

import os
import shutil
import tempfile
from pathlib import Path

from tests.configuration import PASSWORD
from tests.golden import questions, recorded
from tests.golden.recorded import Answer
from tests.web.conftest import STATE


def record() -> None:
    """Write all answers again."""
    found: dict[str, list[Answer]] = {}
    with tempfile.TemporaryDirectory(prefix="golden-") as folder:
        live, web = Path(folder, "folder"), Path(folder, "page")
        live.mkdir()
        web.mkdir()
        for name in questions.STATES:
            for file, answer in questions.answers(name):
                found.setdefault(file, []).append(answer)
        for file, answer in (*questions.answers_on_engine(live), *questions.answers_of_page(web, STATE)):
            found.setdefault(file, []).append(answer)
    shutil.rmtree(recorded.FOLDER, ignore_errors=True)
    for file, those in found.items():
        recorded.write(file, those)
    print(f"{sum(map(len, found.values()))} answers in {len(found)} files below {recorded.FOLDER}")


os.environ["OVIRT_PASSWORD"] = PASSWORD
record()
