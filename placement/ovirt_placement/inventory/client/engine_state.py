"""The state where no service runs: read from the engine by who needs it, with what the store adds."""

from __future__ import annotations

from ovirt_placement.config import Config
from ovirt_placement.inventory.client import turns
from ovirt_placement.inventory.client.direct import DirectReader
from ovirt_placement.inventory.client.keys import levels, names_host_tags, searches
from ovirt_placement.inventory.client.overlay import IntentOverlay, KeyOverlay
from ovirt_placement.inventory.decision import Base, NoSnapshot
from ovirt_placement.inventory.on_demand.statistics import Measured
from ovirt_placement.inventory.published.publication import now
from ovirt_service.errors import UserError


class EngineState:
    """What one process reads of one engine; a `Source` of decisions."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._reader = DirectReader(config.engine, tagged=config.ha.tagged, folder=turns.find_folder(config))
        self._keys = KeyOverlay(config.store, config.engine.name)
        self._intents = IntentOverlay(config.store, config.engine.name)

    def close(self) -> None:
        """Log out of the engine and close the store; what is under way is ended."""
        self._reader.close()
        self._keys.close()
        self._intents.close()

    def base(
        self,
        max_age: float,
        until: float,
        vm: str | None = None,
        *,
        patient: bool = True,
        measured: Measured = Measured.FOR_RESERVATION,
    ) -> Base:
        """Read the engine, with what the store says. All VMs are read: none has to be asked for by itself."""
        records = self._keys.look()
        try:
            found = self._reader.read(
                max_age,
                until,
                levels(records),
                measured,
                host_tags=names_host_tags(records),
                searches=searches(records),
            )
        except UserError as error:
            raise NoSnapshot(str(error)) from error
        except OSError as error:  # no descriptors are left, say: it may pass
            raise NoSnapshot(error.strerror or str(error)) from error
        if found is None:
            raise NoSnapshot(f"{self._config.engine.address}: the engine has not answered yet")
        return Base(self._intents.over(self._keys.over(found, records)), now() - max_age)

    def as_of(self) -> float | None:
        """The moment of the last reading; None before there is one."""
        read = self._reader.last()
        return None if read is None else read[1]

    def last(self) -> Base | None:
        """What was read last, however old; None if that is nothing."""
        read = self._reader.last()
        if read is None:
            return None
        return Base(self._intents.over(self._keys.over(read[0], self._keys.look())), read[1])
