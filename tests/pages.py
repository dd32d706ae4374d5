"""Pages of metrics as Prometheus reads them."""

import re
import shutil
import subprocess
import urllib.request

from prometheus_client.parser import text_string_to_metric_families

#: A metric's name, and the values of its labels in the order of their names.
Sample = tuple[str, ...]


def samples(url: str) -> dict[Sample, float]:
    """Read a page."""
    with urllib.request.urlopen(url) as response:
        page = response.read().decode()
    return {
        (sample.name, *(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
    }


def page_named_in(log: str) -> str:
    """Where a process says that its page is."""
    found = re.search(r"metrics at (http://\S+)", log)
    assert found is not None, log
    return found[1]


def faults(url: str) -> str:
    """What Prometheus' promtool finds wrong with a page; nothing where there is no promtool."""
    with urllib.request.urlopen(url) as response:
        page = response.read()
    if shutil.which("promtool") is None:
        return ""
    command = ["promtool", "check", "metrics"]
    found = subprocess.run(command, input=page, capture_output=True, timeout=60)
    return str(found.stdout + found.stderr, "utf-8")
