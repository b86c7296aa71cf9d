"""The tables of a campaign's file once each of their keys has one value; most are options of a command."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import fields
from typing import Annotated, Any, Final, Literal

import click
from pydantic import Field, create_model

from cosim.experiments.check_experiment import CheckOptions
from cosim.experiments.mutation_task import MutationTask
from cosim.scenario.tables import Table
from ironband.check import check
from ironband.curves import curves
from ironband.mutate import mutate
from ironband.sweep import sweep

__all__ = ["KINDS", "TABLES", "CampaignTable"]

_GIVEN: Final[Any] = ...
_NONE: Final[Any] = Field(default_factory=list)
_Tables = list[dict[str, Any]]
_PLURAL: Final = {"seed": "seeds"}
"""Options whose keys have another name."""


class CampaignTable(Table):
    """The whole file, its tables not looked at."""

    database: Annotated[str, Field(min_length=1)]
    check: _Tables = _NONE
    mutate: _Tables = _NONE
    sweep: _Tables = _NONE
    curves: _Tables = _NONE


def _table(command: click.Command, options: Collection[str], **others: Any) -> type[Table]:
    """Some options of a command, allowed what they are there, and other keys."""
    keys: dict[str, Any] = {}
    for option in command.params:
        if option.name in options:
            default = option.default if isinstance(option.default, bool | int | float | str) else None
            keys[option.name] = _type(option.type), Field(default, alias=_PLURAL.get(option.name))
    return create_model(command.name or "", __base__=Table, **keys, **others)


def _type(kind: click.ParamType[Any]) -> Any:
    if isinstance(kind, click.Choice):
        literal: Any = Literal
        return literal[tuple(kind.choices)]
    if isinstance(kind, click.IntRange | click.FloatRange):
        number = int if isinstance(kind, click.IntRange) else float
        least, above = (None, kind.min) if kind.min_open else (kind.min, None)
        return Annotated[number, Field(ge=least, gt=above, le=kind.max)]
    return bool if isinstance(kind, click.types.BoolParamType) else str


_CURVES = (
    "ports",
    "topology",
    "size",
    "buffer_blocks",
    "cycles",
    "pattern",
    "hot",
    "hot_share",
    "burst",
    "seed",
    "sim",
)

TABLES: Final = {
    "check": _table(check, [field.name for field in fields(CheckOptions)], coverage=(bool, False)),
    "mutate": _table(mutate, [field.name for field in fields(MutationTask)]),
    "sweep": _table(
        sweep, ["sim"], scenario=(str, _GIVEN), set=(Annotated[dict[str, Any], Field(min_length=1)], _GIVEN)
    ),
    "curves": _table(
        curves, _CURVES, loads=(Annotated[float, Field(gt=0, le=1)], _GIVEN), queueing=(Literal["voq", "fifo"], _GIVEN)
    ),
}
"""By the name of a command."""

KINDS: Final = tuple(TABLES)
