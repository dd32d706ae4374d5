"""What disks and network interfaces measure: names, units and kinds as the engine has them, and only zeros.

Source: the engine's DiskStatisticalQuery, NicStatisticalQuery and HostNicStatisticalQuery.
"""

from __future__ import annotations

from .entities import Statistic


def _rate(name: str, description: str, unit: str = "bytes_per_second") -> Statistic:
    return Statistic(
        name=name, description=description, kind="gauge", type="decimal", unit=unit, values=(0.0,)
    )


def _count(name: str, description: str, unit: str = "none", type_name: str = "integer") -> Statistic:
    return Statistic(
        name=name,
        description=description,
        kind="counter",
        type=type_name,
        unit=unit,
        values=(0 if type_name == "integer" else 0.0,),
    )


OF_DISKS = (
    _rate("data.current.read", "Read data rate"),
    _count("data.current.read_ops", "Read data ops", type_name="decimal"),
    _rate("data.current.write", "Write data rate"),
    _count("data.current.write_ops", "Write data ops", type_name="decimal"),
    _rate("disk.read.latency", "Read latency", "seconds"),
    _rate("disk.write.latency", "Write latency", "seconds"),
    _rate("disk.flush.latency", "Flush latency", "seconds"),
)
OF_NICS = (
    _rate("data.current.rx", "Receive data rate"),
    _rate("data.current.tx", "Transmit data rate"),
    _rate("data.current.rx.bps", "Receive data rate", "bits_per_second"),
    _rate("data.current.tx.bps", "Transmit data rate", "bits_per_second"),
    _count("errors.total.rx", "Total receive errors"),
    _count("errors.total.tx", "Total transmit errors"),
    _count("data.total.rx", "Total received data", "bytes"),
    _count("data.total.tx", "Total transmitted data", "bytes"),
)
