"""The low-level plan of one source: the work of all queries next to the source, as pure data.

In: made by terascope.physical. Out: the plan that travels to the tasks that read the source.
Expressions are over the columns of the connector. A query takes the tuples that have all bits of
its `signature` in the prefilter's bit vector (dissertation 3.4.2) and pass its `rest`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from terascope.connectors.base import Column
from terascope.functions.overflow import SUM
from terascope.functions.slices import SliceVector
from terascope.functions.slots import COUNT, COUNT_OF, SUM_INT, SlotKind
from terascope.kernels.codegen.program import Program, program
from terascope.kernels.codegen.statements import is_number
from terascope.kernels.merge.groups import GroupFields
from terascope.kernels.tables.slots import Shape
from terascope.plan.build import FALSE
from terascope.plan.expr import AggCall, Expr, columns_of, substitute
from terascope.plan.rel import Field
from terascope.plan.show import show_expr
from terascope.sharing.slices import Periodic
from terascope.types import Type

TableKind: TypeAlias = Literal["open", "direct_mapped", "second_chance", "lru"]
Flush: TypeAlias = Literal["eager", "lazy"]


@dataclass(frozen=True)
class TableChoice:
    """The kind of table that keeps groups: paper 1, section 6; paper 4, III-C."""

    kind: TableKind = "open"
    flush: Flush = "eager"
    max_bytes: int = 64 << 20
    """The table's share of the memory budget of a task."""
    groups: int | None = None
    """The groups that a table of fixed size holds; None: as many as fit into its share."""


@dataclass(frozen=True)
class Where:
    """A condition in addition to a query's own: these bits, and this rest."""

    signature: tuple[int, ...]
    rest: tuple[Expr, ...] = ()


@dataclass(frozen=True)
class Slot:
    """The state that a table keeps for one sub-aggregate."""

    name: str
    kind: SlotKind
    argument: Expr | None
    type: Type
    where: Where | None = None
    """The admission predicate of the slot, where queries with the same keys share a table."""
    more: tuple[Expr, ...] = ()
    """The further arguments of a state, such as the weight of a value, or its place in the stream.
    """

    @property
    def kept(self) -> SlotKind:
        """The slot as tables know it: counting the tuples of a predicate counts a mask."""
        return COUNT_OF if self.kind == COUNT and self.where is not None else self.kind

    @property
    def state(self) -> tuple[SlotKind, tuple[Expr, ...], Where | None]:
        """The state that the slot keeps, whatever its name."""
        return self.kind, self.arguments, self.where

    @property
    def arguments(self) -> tuple[Expr, ...]:
        return () if self.argument is None else (self.argument, *self.more)

    @property
    def sum_text(self) -> str:
        """The text of a sum of integers, for messages; empty for any other slot."""
        if self.kind != SUM_INT or self.argument is None:
            return ""
        return f"{SUM}({show_expr(self.argument)})"


@dataclass(frozen=True)
class LowSelect:
    """A selection: some columns of the tuples that pass."""

    name: str
    interfaces: tuple[str, ...]
    signature: tuple[int, ...]
    rest: tuple[Expr, ...]
    items: tuple[tuple[str, Expr], ...]

    @property
    def fields(self) -> tuple[Field, ...]:
        return tuple(Field(name, expr.type) for name, expr in self.items)


@dataclass(frozen=True)
class LowAggregate:
    """A sub-aggregation: partial groups of the tuples that pass."""

    name: str
    interfaces: tuple[str, ...]
    signature: tuple[int, ...]
    rest: tuple[Expr, ...]
    keys: tuple[tuple[str, Expr], ...]
    epoch: int | None
    """The key that moves with time, if there is one: groups of an epoch that is over are complete.
    The key never decreases when the one column that it is computed from does not."""
    slots: tuple[Slot, ...]
    table: TableChoice = TableChoice()
    epoch_in_key: bool = False
    """Whether epochs are short, so that the tuples of a batch belong to many of them."""
    anyof: tuple[Where, ...] = ()
    """Conditions of which a tuple must meet at least one to enter the table, if there are any."""
    parent: str | None = None
    """The intermediate node, or the query, whose groups it reads (paper 4, III-C); None: tuples."""

    @property
    def fields(self) -> tuple[Field, ...]:
        keys = tuple(Field(name, expr.type) for name, expr in self.keys)
        return keys + tuple(Field(slot.name, slot.type) for slot in self.slots)

    @property
    def epoch_expr(self) -> Expr | None:
        """The expression of the epoch, if there is one."""
        return None if self.epoch is None else self.keys[self.epoch][1]

    @property
    def plain_keys(self) -> tuple[Expr, ...]:
        """The keys that are codes in the rows of a table: all keys but the epoch."""
        return tuple(expr for i, (_, expr) in enumerate(self.keys) if i != self.epoch)

    @property
    def outputs(self) -> tuple[Expr, ...]:
        """The keys and the arguments of slots, which are computed of every tuple."""
        arguments = (expr for slot in self.slots for expr in slot.arguments)
        return (*(expr for _, expr in self.keys), *arguments)

    @property
    def shape(self) -> Shape:
        """The shape of groups in a table. An epoch in the key is its first word, as two codes."""
        keys = len(self.plain_keys) + 2 * (self.epoch_in_key and self.epoch is not None)
        return Shape(keys, tuple(slot.kept for slot in self.slots))

    @property
    def group_shape(self) -> Shape:
        """The shape of groups that left a table: without their epoch."""
        return Shape(len(self.plain_keys), self.shape.slots)

    @property
    def groups(self) -> GroupFields:
        """The layout of the groups for the operators above."""
        keys = (Field(name, expr.type) for name, expr in self.keys)
        return group_fields(keys, self.slots, self.epoch)


LowQuery: TypeAlias = LowSelect | LowAggregate


def expressions_of(query: LowQuery) -> tuple[Expr, ...]:
    """The expressions that a query computes for a tuple with its bits."""
    if isinstance(query, LowSelect):
        return (*query.rest, *(expr for _, expr in query.items))
    wheres = (*query.anyof, *(slot.where for slot in query.slots if slot.where is not None))
    beyond = dict.fromkeys(predicate for where in wheres for predicate in where.rest)
    return (*query.rest, *beyond, *query.outputs)


@dataclass(frozen=True)
class LowPlan:
    columns: tuple[Column, ...]
    predicates: tuple[Expr, ...]
    """The prefilter: predicate k is bit k of the vector, evaluated once for each tuple."""
    queries: tuple[LowQuery, ...]
    memory_bytes: int = 1 << 30
    """The memory of a task for tables, pending groups and dictionaries."""
    compiled: bool = True
    """False: numpy instead of machine code; the answers are the same."""
    inner: tuple[LowAggregate, ...] = ()
    """Intermediate aggregates: only the aggregations that name them as their parent read them."""

    @property
    def aggregations(self) -> tuple[LowAggregate, ...]:
        return tuple(query for query in self.queries if isinstance(query, LowAggregate))

    def part_of(self, names: Collection[str]) -> LowPlan:
        """The plan for some of its queries. The groups that these read of other nodes are those of
        intermediate aggregates.
        """
        nodes = {node.name: node for node in (*self.inner, *self.aggregations)}
        queries = tuple(query for query in self.queries if query.name in names)
        above: set[str] = set()
        for query in queries:
            parent = query.parent if isinstance(query, LowAggregate) else None
            while parent is not None:
                above.add(parent)
                parent = nodes[parent].parent
        inner = tuple(nodes[name] for name in nodes if name in above and name not in names)
        bits = {bit for query in (*queries, *inner) for bit in bits_of(query)}
        predicates = tuple(p if i in bits else FALSE for i, p in enumerate(self.predicates))
        return replace(self, queries=queries, inner=inner, predicates=predicates)

    @property
    def columns_used(self) -> frozenset[str]:
        """The columns that its queries read."""
        nodes = (*self.queries, *self.inner)
        found = [*self.predicates, *(expr for node in nodes for expr in expressions_of(node))]
        return frozenset[str]().union(*map(columns_of, found))


def bits_of(query: LowQuery) -> Iterator[int]:
    """The predicates of the prefilter that a query looks at."""
    yield from query.signature
    if isinstance(query, LowAggregate):
        for where in (*query.anyof, *(slot.where for slot in query.slots)):
            yield from () if where is None else where.signature


def group_fields(keys: Iterable[Field], slots: Sequence[Slot], epoch: int | None) -> GroupFields:
    """The layout of groups with these slots."""
    fields = tuple(keys)
    return GroupFields(
        fields,
        tuple(Field(slot.name, slot.type) for slot in slots),
        Shape(len(fields) - (epoch is not None), tuple(slot.kept for slot in slots)),
        epoch,
        tuple(slot.sum_text for slot in slots),
    )


def slot_of(name: str, agg: AggCall, below: Mapping[str, Expr]) -> Slot:
    """The slot of a sub-aggregate; `below` defines its columns."""
    args = tuple(substitute(arg, below) for arg in agg.args)
    kind = agg.function.slot(tuple(arg.type for arg in args))
    assert kind is not None
    return Slot(name, kind, args[0] if args else None, agg.type, more=args[1:])


def has_slot(agg: AggCall) -> bool:
    """Whether one slot keeps the state of an aggregate."""
    if agg.distinct:
        return False
    kind = agg.function.slot(tuple(arg.type for arg in agg.args))
    return kind is not None and (not kind.reads_value or is_number(agg.args[0].type))


Queries: TypeAlias = Mapping[str, LowAggregate]
"""An aggregation, in each read that has tuples for it."""


@dataclass(frozen=True)
class Windows:
    """Groups of windows that are assembled from the groups of slices of another stream."""

    stream: str
    vector: SliceVector
    window: Periodic
    columns: tuple[str, ...]
    """The columns of the stream: the keys, `wend` in the place of the slice, and the slots."""
    keys: int
    """The number of key columns."""
    earlier: tuple[tuple[str, SliceVector], ...] = ()
    """Other streams of the same groups in other slices, which the windows contain as well."""


@dataclass(frozen=True)
class LowOutput:
    """A low-level stream as the high level reads it: tuples, or groups that were merged."""

    name: str
    fields: tuple[Field, ...]
    groups: GroupFields | None
    """The layout of its groups; None for a selection, and for windows."""
    windows: Windows | None = None
    """The windows that are assembled from another low-level stream after its merge."""
    merged_above: bool = False
    """Its readers merge its groups once more, so that a group may have several rows."""

    def with_slots(self, slots: Sequence[Slot]) -> LowOutput:
        """The same groups with other slots."""
        assert self.groups is not None
        wide = group_fields(self.groups.keys, slots, self.groups.epoch)
        return replace(self, fields=wide.fields, groups=wide)


@dataclass(frozen=True)
class AdmissionPredicate:
    """The condition of a tuple to enter a shared table: any of the queries takes it."""

    signature: tuple[int, ...]
    rest: tuple[Expr, ...]
    anyof: tuple[Where, ...]

    @staticmethod
    def of(queries: Sequence[LowAggregate]) -> AdmissionPredicate:
        first = queries[0]
        if same_tuples(queries):
            return AdmissionPredicate(first.signature, first.rest, first.anyof)
        bits = [b for b in first.signature if all(b in q.signature for q in queries)]
        rest = [p for p in first.rest if all(p in q.rest for q in queries)]
        common = AdmissionPredicate(tuple(bits), tuple(rest), ())
        wheres = [common.where(q) for q in queries]
        known = tuple(dict.fromkeys(w for w in wheres if w is not None))
        return common if None in wheres else replace(common, anyof=known)

    def where(self, query: LowAggregate) -> Where | None:
        """The further condition of a query; None: there is none."""
        bits = tuple(b for b in query.signature if b not in self.signature)
        rest = tuple(p for p in query.rest if p not in self.rest)
        return Where(bits, rest) if bits or rest else None

    def admitting(self, query: LowAggregate, slots: tuple[Slot, ...]) -> LowAggregate:
        """An aggregation of the tuples that enter the table, with the slots of all queries."""
        return replace(
            query, signature=self.signature, rest=self.rest, anyof=self.anyof, slots=slots
        )

    def slots(self, query: LowAggregate) -> list[Slot]:
        """The slots of a query in the table, and the count that marks its groups."""
        where = self.where(query)
        if where is None:
            return list(query.slots)
        seen = Slot("seen", COUNT, None, Type.ULLONG, where)
        return [seen, *(replace(slot, where=where) for slot in query.slots)]


def same_tuples(queries: Sequence[LowAggregate]) -> bool:
    return len({(frozenset(q.signature), frozenset(q.rest), q.anyof) for q in queries}) == 1


def programs(plan: LowPlan) -> tuple[Program, Program]:
    """Two programs: the first computes, for each batch as it is read, the prefilter and the
    selections; the second computes the columns of aggregations when many batches are pending.
    Aggregations that read the groups of others need no program.
    """
    selected = [e for q in plan.queries if isinstance(q, LowSelect) for _, e in q.items]
    tables = [table for table in (*plan.aggregations, *plan.inner) if table.parent is None]
    grouped = [expr for table in tables for expr in table.outputs]
    return program(plan.predicates, selected), program((), grouped)
