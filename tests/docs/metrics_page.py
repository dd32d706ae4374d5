"""The reference of metrics, as each process registers them."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

from prometheus_client import CollectorRegistry

from ovirt_enforcer.ha_monitor.metrics import HaMetrics
from ovirt_enforcer.service.metrics import EnforcerMetrics as EnforcerMetrics
from ovirt_placement.inventory.service.metrics import InventoryMetrics as InventoryMetrics
from ovirt_scheduler_proxy.operation.metrics import Metrics as ProxyMetrics

HEAD = """\
# Reference of metrics

Made from the code that keeps them (`make reference`). Where Prometheus reads them:
[proxy.md](proxy.md#watch-it), [inventory.md](inventory.md#watch-it) and
[configuration.md](configuration.md#metrics). Each also has
`process_*`: memory, processor time, open files. A histogram has `_bucket`, `_sum` and `_count`.
"""
#: A page of the proxy shows what its plugins are at that moment: here, none.
_NO_PLUGINS = SimpleNamespace(
    plugins=SimpleNamespace(pools={}, registry=SimpleNamespace(units=())),
    breakers=SimpleNamespace(open_keys=tuple),
)


def metrics_page() -> str:
    proxy = ProxyMetrics(_NO_PLUGINS)  # type: ignore[arg-type]
    enforcer = EnforcerMetrics()
    HaMetrics(enforcer.registry)
    parts = [HEAD]
    for name, registry in (
        ("ovirt-scheduler-proxy", proxy._registry),
        ("ovirt-placement inventory", InventoryMetrics().registry),
        ("ovirt-enforcer", enforcer.registry),
    ):
        head = ("| metric | kind | labels | meaning |", "| --- | --- | --- | --- |")
        parts.append("\n".join([f"## {name}", "", *head, *sorted(_rows(registry)), ""]))
    return "\n".join(parts)


def _rows(registry: CollectorRegistry) -> Iterator[str]:
    for collector in registry._collector_to_names:
        for family, labels in _families(collector):
            if not family.name.startswith("process_"):
                name = f"{family.name}_total" if family.type == "counter" else family.name
                named = ", ".join(f"`{label}`" for label in labels)
                yield f"| `{name}` | {family.type} | {named} | {family.documentation} |"


def _families(collector: Any) -> Iterator[tuple[Any, tuple[str, ...]]]:
    """What a collector tells, with the names of the labels, which only its own classes know."""
    if hasattr(collector, "_labelnames"):
        yield from ((family, tuple(collector._labelnames)) for family in collector.describe())
    else:
        yield from ((family, tuple(getattr(family, "_labelnames", ()))) for family in collector.collect())
