"""What every part of the binder shares: functions, parameters, and the list of mistakes found so
far.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import ParamSpec, TypeVar

from terascope.analysis.order import column_orders
from terascope.analysis.slopes import Orders
from terascope.bind.catalog import Catalog
from terascope.diagnostic import Diagnostic, Mistake, Span, mistake
from terascope.functions.base import AggregateFunction
from terascope.functions.registry import Functions
from terascope.plan.expr import Param
from terascope.plan.rel import Field, Rel
from terascope.syntax import ast

P = ParamSpec("P")
T = TypeVar("T")


@dataclass
class BindContext:
    """The state of binding one script, with the mistakes recorded so far."""

    catalog: Catalog
    functions: Functions
    parameters: dict[str, Param]
    folder_of: Callable[[Span], Path] = lambda _: Path()
    """The folder in which a file named in a place of the script is looked for first."""
    folders: tuple[Path, ...] | None = None
    """Folders that files named in the script must be in; None: they may be anywhere."""
    used_parameters: set[str] = field(default_factory=set)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    streams: dict[str, tuple[Field, ...]] = field(default_factory=dict)
    """The columns of streams that can be read."""
    stream_orders: dict[str, Orders] = field(default_factory=dict)
    failed: set[str] = field(default_factory=set)
    """Streams with mistakes of their own: reading one is not a mistake to tell again."""
    protocols: dict[str, ast.ProtocolStatement] = field(default_factory=dict)
    watchlists: dict[str, ast.WatchlistStatement] = field(default_factory=dict)
    udafs: dict[str, ast.UdafDeclaration] = field(default_factory=dict)
    extractors: dict[str, ast.ExtractorDeclaration] = field(default_factory=dict)
    """UDAF and EXTR declarations, by name in lower case."""
    declared: dict[str, AggregateFunction] = field(default_factory=dict)
    """Aggregates that UDAF declarations make of a sub- and a super-aggregate, in the same way."""
    scratchpads: dict[AggregateFunction, int] = field(default_factory=dict)
    """The bytes that declarations give to states of built-in aggregates next to the source."""
    settings: dict[AggregateFunction, str] = field(default_factory=dict)
    """The strategies that the settings force."""
    strategies: dict[AggregateFunction, str] = field(default_factory=dict)
    """Those that hold for the query being bound."""

    def aggregate(self, name: str) -> AggregateFunction | None:
        """A declared or a registered aggregate."""
        return self.declared.get(name.lower()) or self.functions.aggregate(name)

    def add_stream(self, name: str, rel: Rel) -> None:
        self.streams[name], self.stream_orders[name] = rel.fields, self.orders(rel)

    def orders(self, rel: Rel) -> Orders:
        """The ordered columns of a relation."""
        return column_orders(rel, self.stream_orders)

    @property
    def errors(self) -> int:
        """The number of errors so far."""
        return sum(d.severity == "error" for d in self.diagnostics)

    def attempt(self, step: Callable[P, T], *args: P.args, **options: P.kwargs) -> T | None:
        """Run a step of binding. Return None when it raises mistakes, which are recorded."""
        try:
            return step(*args, **options)
        except Mistake as wrong:
            self.diagnostics += wrong.diagnostics
            return None

    def find_file(self, name: str, span: Span) -> Path:
        """A file named in the script: beside it, else in the working directory; absolute, for a
        task may run elsewhere.
        """
        beside = self.folder_of(span) / name
        found = beside if beside.exists() or not Path(name).exists() else Path(name)
        if self.folders is None:
            return found.absolute()
        real = found.resolve()
        if any(real.is_relative_to(folder.resolve()) for folder in self.folders):
            return real
        message = f"a query may not read '{name}': it is in no folder of the setting query_files"
        help = 'whoever runs the set can allow its folder: query_files = ["FOLDER"]'
        raise mistake("forbidden-file", message, span, help=help)

    def error(
        self,
        code: str,
        message: str,
        span: Span,
        *,
        notes: tuple[str, ...] = (),
        help: str | None = None,
    ) -> None:
        self.diagnostics.append(Diagnostic(code, message, span, notes, help))

    def warning(self, code: str, message: str, span: Span, *, help: str | None = None) -> None:
        self.diagnostics.append(Diagnostic(code, message, span, (), help, "warning"))
