"""The reference of metrics, as each process registers them."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, NamedTuple

from ovirt_enforcer.service.metrics import EnforcerMetrics as EnforcerMetrics
from ovirt_enforcer.service.metrics import HaMetrics
from ovirt_placement.inventory.service.metrics import InventoryMetrics as InventoryMetrics
from ovirt_placement_web.bounds import WebMetrics
from ovirt_scheduler_proxy.reporting import Metrics as ProxyMetrics

HEAD = """\
# Reference of metrics

Made from the code that keeps them (`make reference`). Where Prometheus reads them:
[proxy.md](proxy.md#watch-it), [inventory.md](inventory.md#watch-it), [web.md](web.md#for-programs) and
[configuration.md](configuration.md#metrics). Each also has `..._build_info{version}`, and
`process_*`: memory, processor time, open files. A histogram has `_bucket`, `_sum` and `_count`.
"""
#: A page of the proxy shows what its plugins are at that moment: here, none.
_NO_PLUGINS = SimpleNamespace(
    plugins=SimpleNamespace(pools={}, units=()),
    breakers=SimpleNamespace(open_keys=tuple),
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
    HaMetrics(enforcer)
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
