"""Read this first: the way from text to answers.

text --parse--> Script --bind--> Plan --optimize--> Plan --plan_job--> Job --run--> rows

plan_job first splits every query into a low part, which runs next to its source, and a high part.

Everything up to the Job is pure data and needs no Spark. terascope.spark and terascope.local run a
Job; terascope.reference computes the meaning of a Plan in plain Python.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from terascope.analysis.merging import refused_in_streams
from terascope.analysis.order import plan_orders
from terascope.analysis.slopes import Orders
from terascope.bind.catalog import Catalog
from terascope.bind.script import bind_script
from terascope.config import Config
from terascope.connectors.base import interface_of
from terascope.connectors.registry import Interface
from terascope.diagnostic import (
    Diagnostic,
    QueryError,
    Source,
    SourceError,
    Span,
    reason_of,
)
from terascope.files import output_mode
from terascope.functions.registry import Functions
from terascope.local.choice import EngineRequest
from terascope.operate.control_requests import with_shown
from terascope.optimize.driver import optimize
from terascope.physical.job import Job
from terascope.physical.planner import SPLITTING, drafted
from terascope.physical.settings import APART, Destination, costs_of, host_of
from terascope.physical.split.slicing import InForce
from terascope.physical.split.split_plan import SplitPlan, split_plan
from terascope.physical.splits import SPLIT_BYTES, fitting_split_bytes
from terascope.plan.plan import Plan
from terascope.plan.show import full_text
from terascope.streaming.parameters import Change, with_changes
from terascope.syntax.ast import Script
from terascope.syntax.parser import parse_recovering
from terascope.uncollected import uncollected


@dataclass(frozen=True)
class Bindings:
    """The bindings of a query set: sources, sets, parameters, functions."""

    interfaces: Mapping[str, Interface] = field(default_factory=dict)
    sets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    parameters: Mapping[str, str] = field(default_factory=dict)
    functions: Functions = field(default_factory=Functions.builtin)
    config: Config = field(default_factory=Config)
    query_files: tuple[Path, ...] | None = None
    """Folders with files that a query may name; None: it may name any."""
    engine: EngineRequest = field(default_factory=EngineRequest)
    """The settings about the engine of a batch."""

    def cut_bytes(self, live: bool) -> int:
        """The size of splits; for live sources, of pieces of new data."""
        if self.config.split_bytes is not None:
            return self.config.split_bytes
        return SPLIT_BYTES if live else fitting_split_bytes(self.interfaces.values())

    @property
    def sources(self) -> dict[str, Interface]:
        """The sources by the names that queries call them by; of a partitioned source, one of its
        partitions.
        """
        found: dict[str, Interface] = {}
        for one in self.interfaces.values():
            name = interface_of(one.name)
            if name not in found or not found[name].is_there or not found[name].files:
                found[name] = replace(one, name=name)
        return found

    @property
    def partitions(self) -> dict[str, tuple[str, ...]]:
        """The names of the partitions of each partitioned source."""
        found: dict[str, list[str]] = {}
        for one in self.interfaces.values():
            if one.partition is not None:
                found.setdefault(interface_of(one.name), []).append(one.name)
        return {name: tuple(parts) for name, parts in found.items()}

    @property
    def output_mode(self) -> int:
        """The mode of result files."""
        return output_mode(self.config.outputs == "shared")


@dataclass(frozen=True)
class Compiled:
    """A query set through all stages but the last."""

    source: Source
    script: Script
    plan: Plan
    """The plan as the queries are written."""
    optimized: Plan
    bindings: Bindings
    warnings: tuple[Diagnostic, ...] = ()

    @property
    def runnable(self) -> bool:
        """Whether sources are bound; a set can be checked and explained without."""
        return bool(self.bindings.interfaces)

    @cached_property
    def orders(self) -> Mapping[str, Orders]:
        """The slopes of the columns of every stream."""
        return plan_orders(self.plan)

    def job(self, live: bool = False, destination: Destination = "frames") -> Job:
        """The physical plan; live: as a stream, whose sources are read later.

        Raises:
            SourceError: a source is missing or unreadable.
        """
        return self.job_and_split(live, destination=destination)[0]

    @uncollected
    def job_and_split(
        self,
        live: bool = False,
        in_force: InForce | None = None,
        destination: Destination = "frames",
    ) -> tuple[Job, SplitPlan]:
        """Return the job and the split plan it runs. `in_force`: how a running stream composes its
        windows.

        Raises:
            SourceError: a source is missing or unreadable.
        """
        if not self.runnable:
            raise SourceError(
                "no source is bound; give one with --source [INTERFACE=]KIND:LOCATION"
            )
        bound = self.bindings
        draft = drafted(
            self.optimized, bound.interfaces, bound.cut_bytes(live), bound.config, live,
            destination, in_force,
        )  # fmt: skip
        return draft.job(), draft.split

    def check_stream(self) -> None:
        """Raises:
        QueryError: a query cannot run as a stream.
        """
        refused = refused_in_streams(self.plan)
        if refused:
            raise QueryError(refused, self.source)

    def split(self, live: bool = False) -> SplitPlan:
        """Return the split plan of the set: low parts run next to the sources, high parts above.
        Without sources, every source is taken to be able to run low parts.

        Raises:
            SourceError: a source is missing or unreadable.
        """
        bound = self.bindings
        if not self.runnable:
            return split_plan(self.optimized, host_of(bound.config), costs_of(bound.config), live)
        cut_bytes = bound.cut_bytes(live)
        return drafted(
            self.optimized, bound.interfaces, cut_bytes, bound.config, live, rules=SPLITTING
        ).split

    def apart(self) -> Compiled:
        """The same set without shared tables, so that each aggregation has figures of its own."""
        return self.with_settings(**APART)

    def with_settings(self, **given: Any) -> Compiled:
        """The same set, with other settings of its Config.

        Raises:
            ConfigError: one of them is unknown, or its value makes no sense.
        """
        config = self.bindings.config.changed(**given)
        return replace(self, bindings=replace(self.bindings, config=config))

    def changed(self, changes: Sequence[Change]) -> Compiled:
        """The same set, with other parameter values from some moments on."""
        if not changes:
            return self
        return replace(self, optimized=optimize(with_changes(self.plan, changes)))

    def showing(self, names: Sequence[str]) -> Compiled:
        """The same set, which also emits some of its internal streams."""
        plan = with_shown(self.plan, names)
        return self if plan is self.plan else replace(self, plan=plan, optimized=optimize(plan))

    def texts(self) -> dict[str, str]:
        """The text of each query with all that it reads: equal texts are the same query."""
        trees = {stream.name: stream.rel for stream in self.plan}
        return {stream.name: full_text(stream.rel, trees) for stream in self.plan}


@uncollected
def compile_set(source: Source, bindings: Bindings | None = None) -> Compiled:
    """Text to optimised plan.

    Raises:
        QueryError: the set has mistakes; it carries all of them.
    """
    bindings = bindings or Bindings()
    script, mistakes = parse_recovering(source)
    catalog = Catalog(
        bindings.sources, bindings.sets, bindings.partitions, open_world=not bindings.interfaces
    )

    def folder_of(span: Span) -> Path:
        return Path(source.at(span.start)[0].name).parent

    bound = bind_script(
        script,
        catalog,
        bindings.functions,
        bindings.parameters,
        folder_of,
        bindings.query_files,
        bindings.config.strategies,
    )
    errors = (*mistakes, *bound.errors)
    if errors or bound.plan is None:
        raise QueryError(errors, source)
    warnings = tuple(d for d in bound.diagnostics if d.severity == "warning")
    return Compiled(source, script, bound.plan, optimize(bound.plan), bindings, warnings)


def files_allowed(source: Source, folders: Sequence[Path] | None) -> tuple[Path, ...] | None:
    """The folders from which a query set may read files; None: any folder. A query file of another
    user reads only the folders that the configuration allows.
    """
    if folders is not None:
        return tuple(folders)
    paths = [Path(file.name) for _, file in source.stretches()]
    ours = (os.geteuid(), 0)
    is_others = any(path.is_file() and path.stat().st_uid not in ours for path in paths)
    return () if is_others else None


def read_source(path: Path) -> Source:
    """A query file.

    Raises:
        SourceError: it is missing or no text.
    """
    try:
        return Source(path.read_text(encoding="utf-8"), str(path))
    except FileNotFoundError:
        raise SourceError(f"no such query file: '{path}'") from None
    except IsADirectoryError:
        raise SourceError(f"'{path}' is a directory, not a query file") from None
    except UnicodeDecodeError:
        raise SourceError(f"'{path}' is not a text file in UTF-8") from None
    except OSError as problem:
        raise SourceError(f"cannot read '{path}': {reason_of(problem)}") from problem
