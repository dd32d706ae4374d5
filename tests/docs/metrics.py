"""What follows from the metrics that processes keep: their reference, and a dashboard for each service."""

import json
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

from ovirt_enforcer.service.metrics import EnforcerMetrics as EnforcerMetrics
from ovirt_placement.inventory.service.attempts import InventoryMetrics as InventoryMetrics
from ovirt_placement_web.bounds import WebMetrics
from ovirt_scheduler_proxy.logs import Metrics as ProxyMetrics

HEAD = """\
# Reference of metrics

Made from the code that keeps them (`make reference`). Where Prometheus reads them:
[proxy.md](proxy.md#watch-it), [inventory.md](inventory.md#watch-it), [web.md](web.md#for-programs) and
[configuration.md](configuration.md#metrics). Each also has `..._build_info{version}`, and
`process_*`: memory, processor time, open files. A histogram has `_bucket`, `_sum` and `_count`.
"""
#: A page of the proxy shows what its plugins are at that moment: here, none.
_NO_PLUGINS = SimpleNamespace(
    plugins=lambda: SimpleNamespace(pools={}, units=()), breakers=SimpleNamespace(open_keys=tuple)
)


SERVICES = ("ovirt-scheduler-proxy", "ovirt-placement inventory", "ovirt-enforcer", "ovirt-placement-web")


class KnownMetric(NamedTuple):
    """One metric of a service, as Prometheus shows it."""

    service: str
    name: str
    kind: str
    labels: tuple[str, ...]
    meaning: str

    @property
    def series(self) -> tuple[str, ...]:
        """The names of what Prometheus stores of it."""
        if self.kind == "histogram":
            return tuple(f"{self.name}_{part}" for part in ("bucket", "sum", "count"))
        return (self.name,)


def metrics_page() -> str:
    parts = [HEAD]
    for service in SERVICES:
        own = (one for one in all_metrics() if one.service == service)
        rows = (_row(one) for one in own if not one.name.endswith("_build_info"))
        parts.append("\n".join([f"## {service}", "", *sorted(rows), ""]))
    return "\n".join(parts)


def all_metrics() -> Iterator[KnownMetric]:
    """Every metric but `process_*`, which each service has."""
    proxy = ProxyMetrics(_NO_PLUGINS)  # type: ignore[arg-type]
    enforcer = EnforcerMetrics()
    registries = (proxy.registry, InventoryMetrics().registry, enforcer.registry, WebMetrics().registry)
    for service, registry in zip(SERVICES, registries, strict=True):
        for collector in registry._collector_to_names:
            for family, labels in _families(collector):
                if not family.name.startswith("process_"):
                    name = f"{family.name}_total" if family.type == "counter" else family.name
                    yield KnownMetric(service, name, family.type, labels, family.documentation)


def _row(one: KnownMetric) -> str:
    labels = ", ".join(one.labels)
    series = f"{one.name}{{{labels}}}" if labels else one.name
    return f"- `{series}` ({one.kind}): {one.meaning}"


def _families(collector: Any) -> Iterator[tuple[Any, tuple[str, ...]]]:
    """What a collector shows, with the names of the labels, which only its own classes know."""
    if hasattr(collector, "_labelnames"):
        yield from ((family, tuple(collector._labelnames)) for family in collector.describe())
    else:
        yield from ((family, tuple(getattr(family, "_labelnames", ()))) for family in collector.collect())


_COLUMNS, _WIDTH, _HEIGHT = 2, 12, 8
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
#: What every process shows of itself.
_PROCESS = (
    ("Memory", "process_resident_memory_bytes", "bytes"),
    ("Processor time per second", "rate(process_cpu_seconds_total[$__rate_interval])", "short"),
    ("Open files", "process_open_fds", "short"),
)


class Panel(NamedTuple):
    """One graph: each line an expression with a legend."""

    title: str
    lines: tuple[tuple[str, str], ...]
    unit: str


class Board(NamedTuple):
    uid: str
    title: str
    panels: tuple[Panel, ...]


def dashboards() -> dict[str, str]:
    """Each dashboard as JSON, by the name of its file."""
    boards = [overview(), *(board_of(service) for service in SERVICES)]
    return {f"{board.uid}.json": json.dumps(_dashboard(board), indent=1) + "\n" for board in boards}


_ENFORCER, _PROXY = "ovirt_placement_enforcer", "ovirt_scheduler_proxy"
_CALLS = f"sum by (instance, result) (rate({_PROXY}_calls_total[$__rate_interval]))"
_AGE = "time() - ovirt_placement_inventory_snapshot_timestamp_seconds"


def overview() -> Board:
    """What an administrator looks at first: are rules satisfied, are VMs safe, do all parts answer."""
    p99 = _quantile(0.99, f"{_PROXY}_call_duration_seconds", ("instance",))
    migrations, where = f"sum by (result) (increase({_ENFORCER}_migrations_total[1h]))", "{{instance}}"
    survived, could = f"{_ENFORCER}_ha_failures_survived", "Highly available VMs could restart (1) or not (0)"
    shown = (
        ("Services that answer", 'up{job=~"ovirt-.*"}', "{{job}} {{instance}}", "short"),
        ("Violated rules", f"{_ENFORCER}_violations", "{{cluster}} {{family}} {{hardness}}", "short"),
        (could, f"{_ENFORCER}_ha_safe", "{{cluster}}", "short"),
        ("Host failures survived", survived, "{{cluster}}", "short"),
        ("Migrations per hour", migrations, "{{result}}", "short"),
        ("Planned migrations", f"{_ENFORCER}_planned_migrations", "{{cluster}}", "short"),
        ("Calls of the engine per second", _CALLS, "{{instance}} {{result}}", "reqps"),
        ("Time of a call, 99 of 100", p99, where, "s"),
        ("Age of what is known of the engine", _AGE, where, "s"),
        ("Enforcers that lead", f"{_ENFORCER}_leader", where, "short"),
    )
    panels = tuple(Panel(title, ((what, legend),), unit) for title, what, legend, unit in shown)
    return Board("ovirt-placement-overview", "oVirt placement: overview", panels)


def board_of(service: str) -> Board:
    """Every metric of a service, and what its process takes."""
    metrics = sorted(one for one in all_metrics() if one.service == service)
    panels = [_panel(one) for one in metrics]
    job = service.replace(" ", "-")
    panels += [
        Panel(title, ((_of_job(expression, job), "{{instance}}"),), unit)
        for title, expression, unit in _PROCESS
    ]
    return Board(job, f"oVirt placement: {service.removeprefix('ovirt-')}", tuple(panels))


def _of_job(expression: str, job: str) -> str:
    name = "process_cpu_seconds_total" if "rate(" in expression else expression
    return expression.replace(name, f'{name}{{job="{job}", instance=~"$instance"}}')


def _panel(one: KnownMetric) -> Panel:
    chosen = f'{one.name}{{instance=~"$instance"}}'
    legend = " ".join(f"{{{{{label}}}}}" for label in ("instance", *one.labels))
    by = ", ".join(("instance", *one.labels))
    if one.kind == "histogram":
        lines = tuple(
            (_quantile(part, one.name, ("instance", *one.labels), chosen=True), f"p{part * 100:g} {legend}")
            for part in (0.5, 0.99)
        )
        return Panel(one.meaning, lines, "s")
    if one.kind == "counter":
        expression = f"sum by ({by}) (rate({chosen}[$__rate_interval]))"
        return Panel(f"{one.meaning} (per second)", ((expression, legend),), "cps")
    if one.name.endswith("_timestamp_seconds"):
        return Panel(f"{one.meaning} (as an age)", ((f"time() - {chosen}", legend),), "s")
    return Panel(one.meaning, ((chosen, legend),), "s" if one.name.endswith("_seconds") else "short")


def _quantile(part: float, name: str, by: Sequence[str], *, chosen: bool = False) -> str:
    which = '{instance=~"$instance"}' if chosen else ""
    rates = f"rate({name}_bucket{which}[$__rate_interval])"
    return f"histogram_quantile({part:g}, sum by ({', '.join((*by, 'le'))}) ({rates}))"


def _dashboard(board: Board) -> dict[str, Any]:
    return {
        "uid": board.uid,
        "title": board.title,
        "tags": ["ovirt", "placement"],
        "schemaVersion": 37,  # Grafana 9.2
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": list(_variables(board))},
        "panels": [_graph(number, panel) for number, panel in enumerate(board.panels)],
    }


def _variables(board: Board) -> Iterator[dict[str, Any]]:
    yield {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Data source"}
    if any("$instance" in line for panel in board.panels for line, _ in panel.lines):
        query = f'label_values(up{{job="{board.uid}"}}, instance)'
        yield {
            "name": "instance",
            "type": "query",
            "label": "Instance",
            "datasource": _SOURCE,
            "query": {"query": query, "refId": "instance"},
            "refresh": 2,
            "multi": True,
            "includeAll": True,
            "allValue": ".*",
            "current": {"text": "All", "value": "$__all"},
        }


def _graph(number: int, panel: Panel) -> dict[str, Any]:
    row, column = divmod(number, _COLUMNS)
    return {
        "id": number + 1,
        "type": "timeseries",
        "title": panel.title,
        "datasource": _SOURCE,
        "gridPos": {"x": column * _WIDTH, "y": row * _HEIGHT, "w": _WIDTH, "h": _HEIGHT},
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "targets": [
            {"refId": chr(ord("A") + at), "expr": expression, "legendFormat": legend, "datasource": _SOURCE}
            for at, (expression, legend) in enumerate(panel.lines)
        ],
    }
