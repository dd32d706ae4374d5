"""Remembers what was decided: plans as they were made, what held steps back, and what each step brought.

A migration that a step was carried out by is an intent, which knows its plan and the number of its step. All
of it is forgotten together with the intents (`Store.forget`).
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, or_, select

from ovirt_placement.store.enforcer.intents import OPEN_STATES, Cause, IntentState, sentence
from ovirt_placement.store.sql.access import EngineRows, StoreAccess, now
from ovirt_placement.store.sql.schema import IS_MIGRATION, held_steps, intents, plans

#: A plan as `ovirt-enforcer plan --json` prints it.
Document = Mapping[str, Any]


class RuleAfterwards(msgspec.Struct, frozen=True):
    """A rule that a step was to repair, and whether it held once the step was done."""

    id: str
    name: str
    holds: bool


class StepOutcome(msgspec.Struct, frozen=True):
    """What a step has brought, seen after its end."""

    #: How many rules it has repaired.
    gain: int
    rules: tuple[RuleAfterwards, ...] = ()


class HeldStep(msgspec.Struct, frozen=True):
    """A step that a gate held back."""

    plan: str
    #: From 1, as in the plan.
    step: int
    gate: str
    #: Why, when it was last held.
    reason: str
    #: How often it was held for that.
    times: int
    #: When for the first time and the last, in seconds since the epoch, by the database's clock.
    created: float
    updated: float


class RecordedMigration(msgspec.Struct, frozen=True, kw_only=True):
    """A migration that was meant, and what is known of it."""

    vm: str
    cluster: str
    source: str | None
    target: str
    correlation_id: str
    state: IntentState
    #: In seconds since the epoch, by the database's clock; `updated` is when its state was last changed.
    created: float
    updated: float
    cause: Cause | None
    error: str | None
    plan: str | None
    step: int | None
    outcome: StepOutcome | None

    @property
    def seconds(self) -> float:
        """From before it was asked for until its state was last changed."""
        return self.updated - self.created

    @property
    def reason(self) -> str | None:
        """Why it failed or is unknown, in one sentence."""
        return sentence(self.cause, self.error)


class PlanRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A plan that was made, with all that came of it."""

    id: str
    cluster: str
    #: Of the lease under which it was made; null if by a person.
    epoch: int | None
    #: As one of `clusters` that `plan --json` prints, by the release that made it.
    document: dict[str, Any]
    #: When it was made for the first time and the last, by the database's clock.
    created: float
    updated: float
    migrations: tuple[RecordedMigration, ...] = ()
    held: tuple[HeldStep, ...] = ()

    @property
    def steps(self) -> tuple[Mapping[str, Any], ...]:
        return tuple(self.document.get("steps", ()))

    @property
    def remaining(self) -> tuple[Mapping[str, Any], ...]:
        """The rules that are not repaired."""
        return tuple(self.document.get("remaining", ()))


class EndedStep(msgspec.Struct, frozen=True, kw_only=True):
    """A step of a plan that has ended, and of which it is not known yet what it brought."""

    cluster: str
    plan: str
    step: int
    #: The step as the plan has it.
    document: dict[str, Any]
    migrations: tuple[RecordedMigration, ...]

    @property
    def done(self) -> bool:
        """Whether every VM arrived."""
        return all(migration.state is IntentState.DONE for migration in self.migrations)


class HistoryStore(StoreAccess):
    """The decisions about one engine's VMs, in a database."""

    def record_plan(
        self, plan_id: str, cluster: str, document: Document, *, epoch: int | None = None
    ) -> None:
        """Write down a plan; one that was made before counts as made again."""
        values = {"cluster": cluster, "epoch": epoch, "document": dict(document), "updated": now()}
        with self._leading() as rows:
            rows.put(plans, {"id": plan_id, "created": now()}, values)

    def record_held(self, plan_id: str, held: Mapping[int, tuple[str, str]]) -> None:
        """Write down which gate held steps of a plan back and why, by their numbers: once more."""
        with self._leading() as rows:
            for step, (gate, reason) in held.items():
                key = {"plan": plan_id, "step": step, "gate": gate, "times": 1, "created": now()}
                values = {"reason": reason, "updated": now()}
                rows.put(held_steps, key, values, times=held_steps.c.times + 1)

    def record_outcome(self, correlation_ids: Iterable[str], outcome: StepOutcome) -> None:
        """Write down what the migrations of one step have brought together."""
        with self._leading() as rows:
            found = intents.c.correlation_id.in_(list(correlation_ids))
            rows.change(intents, found, outcome=msgspec.to_builtins(outcome))

    def ended_steps(self) -> tuple[EndedStep, ...]:
        """List the steps that have ended without `record_outcome`; those of plans that are known."""
        open_steps = intents.alias()
        under_way = open_steps.c.state.in_(OPEN_STATES)
        with self._reading() as rows:
            busy = select(open_steps.c.id).where(
                under_way,
                open_steps.c.engine == intents.c.engine,
                open_steps.c.plan == intents.c.plan,
                open_steps.c.step == intents.c.step,
            )
            waiting = (intents.c.plan.is_not(None), intents.c.outcome.is_(None), ~busy.exists())
            by_step = defaultdict(list)
            for migration in _migrations(rows, intents.c.state.not_in(OPEN_STATES), *waiting):
                by_step[migration.plan, migration.step].append(migration)
            if not by_step:
                return ()
            named = rows.select(plans).where(plans.c.id.in_({plan for plan, _ in by_step}))
            steps_of = {row.id: row.document.get("steps", ()) for row in rows.execute(named)}
        return tuple(
            EndedStep(
                cluster=migrations[0].cluster,
                plan=plan,
                step=step,
                document=steps_of[plan][step - 1],
                migrations=tuple(migrations),
            )
            for (plan, step), migrations in by_step.items()
            if step is not None and plan is not None and 0 < step <= len(steps_of.get(plan, ()))
        )

    def plans(self, *, since_seconds: float) -> tuple[PlanRecord, ...]:
        """List the plans that were made, carried out or held back lately, the one made last at the end."""
        with self._reading() as rows:
            lately = now() - since_seconds
            touched = [
                rows.select(table, table.c.plan).where(table.c.updated > lately)
                for table in (held_steps, intents)
            ]
            return _plans(rows, or_(plans.c.updated > lately, *(plans.c.id.in_(query) for query in touched)))

    def plans_named(self, prefix: str) -> tuple[PlanRecord, ...]:
        """List the plans whose id begins so: one, unless there is none or the beginning is too short."""
        with self._reading() as rows:
            return _plans(rows, plans.c.id.startswith(prefix, autoescape=True))

    def unplanned(self, *, since_seconds: float) -> tuple[RecordedMigration, ...]:
        """List lately changed migrations of which no plan is known, the oldest first."""
        with self._reading() as rows:
            known = rows.select(plans, plans.c.id)
            no_plan = or_(intents.c.plan.is_(None), intents.c.plan.not_in(known))
            return _migrations(rows, no_plan, IS_MIGRATION, intents.c.updated > now() - since_seconds)


def _plans(rows: EngineRows, condition: ColumnElement[bool]) -> tuple[PlanRecord, ...]:
    query = rows.select(plans).where(condition).order_by(plans.c.updated, plans.c.id)
    found = rows.records(PlanRecord, query)
    ids = [plan.id for plan in found]
    of_plans = rows.select(intents).order_by(intents.c.id)
    migrations = rows.records_by(intents.c.plan, ids, RecordedMigration, of_plans)
    steps = rows.select(held_steps).order_by(held_steps.c.step, held_steps.c.created)
    held = rows.records_by(held_steps.c.plan, ids, HeldStep, steps)
    return tuple(
        msgspec.structs.replace(
            one, migrations=tuple(migrations.get(one.id, ())), held=tuple(held.get(one.id, ()))
        )
        for one in found
    )


def _migrations(rows: EngineRows, *conditions: ColumnElement[bool]) -> tuple[RecordedMigration, ...]:
    return rows.records(RecordedMigration, rows.select(intents).where(*conditions).order_by(intents.c.id))
