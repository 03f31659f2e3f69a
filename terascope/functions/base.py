"""What a scalar function and an aggregate are, apart from any engine.

In: nothing. Out: `Scalar` and `AggregateFunction`, objects that hold all that analyses and engines
need of a function: its type, its meaning on plain values, its role (terascope.functions.roles), how
it moves with time (dissertation 3.1), its cost (3.4.1), how an aggregate splits into sub- and
super-aggregate (paper 1, 3.2), the slot that compiled kernels keep it in
(terascope.functions.slots), its Spark form (terascope.functions.spark_form), and whether it
survives sampling (dissertation 5.4.2). Its name is for queries and messages only: a test sees to it
that nothing else depends on it.
"""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, TypeAlias

from terascope.functions.roles import Role
from terascope.types import Type

if TYPE_CHECKING:
    import pyarrow as pa

    from terascope.functions.bounds import ErrorBound, Errors
    from terascope.functions.slots import SlotKind
    from terascope.functions.spark_form import SparkCall, SparkForm, SparkScalar
    from terascope.sketches.base import StateKind

Value: TypeAlias = Any
"""A value in held form (terascope.types), None for NULL."""

State: TypeAlias = Any
"""An aggregate's state: any picklable value, never changed in place after it was handed out."""


class TypeMistake(Exception):
    """Arguments of types a function does not take. The message says what it takes, in the user's
    words.
    """


class ValueMistake(Exception):
    """A value no answer exists for, such as an integer overflow: the run stops, saying so."""


class StateMistake(ValueMistake):
    """A state of an aggregate that cannot be made, merged or read."""

    def __init__(self, what: str, query: str = "") -> None:
        super().__init__(f"query {query}: {what}" if query else what)
        self.what = what
        self.query = query

    def __reduce__(self) -> tuple[type[StateMistake], tuple[str, str]]:
        return StateMistake, (self.what, self.query)


class FunctionMistake(Exception):
    """A function that cannot be registered, or a file of functions that cannot be read."""


# ---- how a value moves along the stream ----------------------------------------------------------


class Trend(enum.Enum):
    CONSTANT = "constant"
    INCREASING = "increasing"
    DECREASING = "decreasing"
    UNORDERED = "unordered"


@dataclass(frozen=True)
class Slope:
    """How an expression moves from tuple to tuple.

    `band`: by how much a later value may fall behind an earlier one (banded_increasing(n)); 0 when
    in order.
    `value`: the constant itself, when it is one and is known.
    """

    trend: Trend
    band: int | float = 0
    strict: bool = False
    value: Value = None

    @property
    def is_ordered(self) -> bool:
        return self.trend in (Trend.INCREASING, Trend.DECREASING)


UNORDERED = Slope(Trend.UNORDERED)


def unordered(_: Sequence[Slope]) -> Slope:
    """The slope rule of most functions: nothing is known."""
    return UNORDERED


# ---- scalars -------------------------------------------------------------------------------------

TypeRule: TypeAlias = Callable[[tuple[Type, ...]], Type]
"""Argument types -> result type; raises TypeMistake."""


@dataclass(frozen=True)
class Scalar:
    """A scalar function or operator. Two are equal when their names are."""

    name: str
    type_rule: TypeRule = field(compare=False)
    evaluate: Callable[..., Value] = field(compare=False)
    """The meaning, on plain values. Called without NULLs unless `strict` is False."""
    strict: bool = field(default=True, compare=False)
    """NULL in, NULL out, without calling `evaluate`."""
    slope: Callable[[Sequence[Slope]], Slope] = field(default=unordered, compare=False, repr=False)
    cost_ns: int = field(default=5, compare=False)
    """Rough cost of a call; `terascope calibrate` measures it."""
    payload_ns: int | None = field(default=None, compare=False)
    """The same where an argument is a packet's payload. None: all of it is gone through, or it is
    no function of text."""
    partial: bool = field(default=False, compare=False)
    """May fail: the tuple is then discarded (GS-Lite's PARTIAL). `evaluate` returns None to say so.
    """
    file_argument: int | None = field(default=None, compare=False)
    """The argument that names a file, if any: it is found beside the query, as a watch list is."""
    user_defined: bool = field(default=False, compare=False)
    unified_from: int | None = field(default=None, compare=False)
    """The arguments from this position on are cast to the one type that holds them all
    (terascope.types.unify) before `evaluate` sees them; None when they keep their types."""
    check_constants: Callable[[Sequence[Value]], None] | None = field(
        default=None, compare=False, repr=False
    )
    """Raises ValueMistake when a constant argument cannot be meant, such as a broken regular
    expression. Called once before a run, with None for every argument that is not constant."""
    takes_held: bool = field(default=False, compare=False)
    """Takes values of type WIDE (terascope.types) as they are held: it compares or hands on, and
    never computes with them. For all others they are converted first."""
    role: Role | None = field(default=None, compare=False, repr=False)
    """The meaning of the function to analyses, rules and engines; None when they need none."""
    spark: SparkScalar | None = field(default=None, compare=False, repr=False)
    """Its Column in Spark. Functions with a role need none, others without run in Python."""
    of_states: bool = field(default=False, compare=False)
    """Takes packed states of aggregates (terascope.sketches): it is computed of finished rows."""
    of_integers: str = field(default="", compare=False)
    """The scalar that an extractor takes in its place where the argument of the aggregate is an
    integer: the value is one of the argument's, digit by digit."""
    columns: Callable[..., pa.Array | None] | None = field(default=None, compare=False, repr=False)
    """Its meaning on whole columns of Arrow, in which constants are repeated: for functions of
    states, which are large. None, as its value or for some columns: a value at a time."""
    doc: str = field(default="", compare=False, repr=False)

    def __call__(self, *args: Value) -> Value:
        if self.strict and any(a is None for a in args):
            return None
        return self.evaluate(*args)


# ---- aggregates ----------------------------------------------------------------------------------

Sampling = Literal["none", "rescale", "keep"]
"""The effect of uniform sampling on a value: not allowed, divide by the rate, or leave as it is."""


class AggregateFunction(ABC):
    """An aggregate: zero, reduce, merge, finish.

    Laws, checked for every registered one: merge(s, zero()) = s = merge(zero(), s); any split of
    the input, reduced apart and merged in stream order, finishes to the same value as the whole.
    When `ordered` is False, merging in any order does.

    A call `f(x, y, 95)` has `arity` argument expressions, then constants: first `state_parameters`
    of them, given to zero(), then `finish_parameters`, given to finish(). Both raise ValueMistake
    for a constant they cannot take, on an empty state too, so that finish(zero(..), ..) checks a
    call before any tuple. A call may leave out what has a default: parameters of zero() first, then
    arguments. It never writes a strategy among the constants.
    """

    name: ClassVar[str]
    arity: ClassVar[int] = 1
    state_parameters: ClassVar[int] = 0
    finish_parameters: ClassVar[int] = 0
    kind: ClassVar[Literal["distributive", "algebraic", "holistic"]] = "distributive"
    ordered: ClassVar[bool] = False
    """The value depends on the order of tuples: reduce() is called in stream order, merge(earlier,
    later)."""
    running: ClassVar[bool] = False
    """Keeps its state over epochs under CLOSING_WHEN."""
    skips_null: ClassVar[bool] = True
    """Tuples with a NULL argument are passed over."""
    takes_star: ClassVar[bool] = False
    """Can be called as f(*): type_rule and reduce then get no arguments."""
    sampling: ClassVar[Sampling] = "none"
    cheap: ClassVar[bool] = True
    """May run in the low level."""
    of_set: ClassVar[bool] = False
    """The value depends on nothing but the set of different values, as it does for every aggregate
    under DISTINCT."""
    keeps_one: ClassVar[bool] = False
    """The aggregate of a single value is that value, as for SUM and MIN."""
    takes_held: ClassVar[bool] = False
    """Takes values of type WIDE as they are held, as a Scalar of that property does."""
    counts_true: ClassVar[bool] = False
    """Takes a condition for a number: TRUE is 1 and FALSE is 0."""
    argument: ClassVar[Term | None] = None
    """The values it takes, in terms of its argument, when they are not the argument itself."""
    adds_floats: ClassVar[Literal["values", "moments"] | None] = None
    """The sums that the aggregate keeps exactly for a FLOAT argument: of the values, or of their
    squares as well. An engine prepares the digits (terascope.functions.exact_floats)."""
    splits_groups: ClassVar[bool] = False
    """A group has a row for each of its values, as if the value were a key."""
    user_defined: ClassVar[bool] = False
    internal: ClassVar[bool] = False
    """Other aggregates split into it; no query can name it."""
    state_classes: ClassVar[tuple[type, ...]] = ()
    """Dataclasses that a state is made of, besides plain values (terascope.functions.states)."""
    optional_arguments: ClassVar[tuple[Value, ...]] = ()
    """Constants that stand for the last arguments, where a call leaves them out."""
    default_parameters: ClassVar[tuple[Value, ...]] = ()
    """Constants that stand for the last parameters of zero(), where a call leaves them out."""
    strategies: ClassVar[Mapping[str, str]] = {}
    """The ways to keep its states, each with a line about it. The last parameter of zero() is then
    the name of one: a query writes it as WITH strategy '...', and it is empty where the optimiser
    chooses."""
    finishes_with_all: ClassVar[bool] = False
    """`finish_state` takes the parameters of zero(), too, before those of finish()."""
    mergeable: ClassVar[bool] = True
    """States can be merged. Only a user's aggregate may come without a merge."""
    scratchpad: ClassVar[int] = 0
    """The most bytes of a packed state next to the source (paper 1, 3.2); 0: not limited."""
    low_scratchpad: ClassVar[tuple[int, int]] = (0, 0)
    """The least bytes that a declaration may give to a state next to the source, and the bytes that
    it has without one. A strategy says other ones behind its name, as in 'gk_lite(4096)'."""
    example_parameters: ClassVar[tuple[Value, ...]] = ()
    """Constants a call may be given, as many as it takes: for the reference and the law tests."""
    further_parameters: ClassVar[tuple[tuple[Value, ...], ...]] = ()
    """Other constants that its declared error bound is tried with."""
    doc: ClassVar[str] = ""

    @abstractmethod
    def type_rule(self, args: tuple[Type, ...]) -> Type:
        """Result type; raises TypeMistake. The types of constants may follow the arguments'."""

    @abstractmethod
    def zero(self, *parameters: Value) -> State: ...

    @abstractmethod
    def reduce(self, state: State, *args: Value) -> State: ...

    @abstractmethod
    def merge(self, left: State, right: State) -> State: ...

    @abstractmethod
    def finish(self, state: State, *parameters: Value) -> Value: ...

    def split(self, args: tuple[Type, ...], finer: bool) -> Decomposition | None:
        """The way a call with such arguments splits into sub- and super-aggregates; None: it does
        not. `finer`: several low groups make up one of the groups asked for.
        """
        return None

    def split_epochs(
        self, args: tuple[Type, ...], parameters: tuple[Value, ...]
    ) -> Decomposition | None:
        """The way a call of a running aggregate splits under CLOSING_WHEN: sub-aggregates are of
        one epoch, super-aggregates go on over epochs. None: it does not, or keeps a state.
        """
        return None

    def reduce_parts(self, state: State, *parts: Value) -> State:
        """Take the sub-aggregates of `split_epochs` in."""
        return self.reduce(state, *parts)

    def slot(self, args: tuple[Type, ...]) -> SlotKind | None:
        """The slot in which the low level keeps it; None when it is not kept in one word. A type of
        arguments that kernels do not hold as numbers is none of its affair.
        """
        return None

    def state(self, args: tuple[Type, ...], parameters: tuple[Value, ...]) -> StateKind | None:
        """The columns that keep a call with such arguments and state parameters where it does not
        fit slots (terascope.sketches); None: it is not kept in parts. Of an order-dependent
        aggregate the columns take the places of tuples in the stream as further arguments. Of one
        that sees NULLs every argument is two: whether there is a value, and the value.
        """
        return None

    def finish_state(self, packed: bytes | None, *parameters: Value) -> Value:
        """The value of a packed state, with the finish parameters (see `finishes_with_all`); the
        state itself if the call means that. None: no tuple had a value.
        """
        return packed

    def has_strategy(self, strategy: str) -> bool:
        """Whether there is a strategy of this name; a name may end in a parameter."""
        return strategy in self.strategies

    def finish_states(self, packed: pa.Array, *parameters: Value) -> pa.Array | None:
        """The same for a column of packed states, NULL where no tuple had a value; None: it has no
        faster way than one by one.
        """
        return None

    def bound(self, *parameters: Value) -> ErrorBound | None:
        """The largest error of a call with such state parameters, or with the example ones; None:
        its value is exact.
        """
        return None

    def errors(self, columns: Sequence[pa.Array], found: Value, *parameters: Value) -> Errors:
        """The errors of a value, in the terms of the bound. `columns`: the arguments of all tuples
        of the group; `parameters`: all of the call. An aggregate with a bound has this method.
        """
        raise NotImplementedError(f"{self.name} declares a bound without a way to check it")

    def opened(self, packed: bytes, *parameters: Value) -> State:
        """The state, as `merge` takes it, that a packed one is; `parameters`: those of zero(). A
        sketch is not opened: what it keeps are not the values.
        """
        raise NotImplementedError(f"states of {self.name} are not opened")

    def spark(self, call: SparkCall) -> SparkForm | None:
        """The aggregate in Spark's own terms; None when it has no such form, or not of such a call.
        Spark then folds the values of a group by the methods above.
        """
        return None

    def of_one(self) -> Term | None:
        """The value for a single row without a NULL, in terms of the arguments; None when only
        `finish` computes it.
        """
        return None

    def is_state(self, state: State) -> bool:
        """Whether a saved state is of the form that this version keeps."""
        return True

    def next_epoch(self, state: State) -> State:
        """The state that a running aggregate carries into the next epoch."""
        return state

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AggregateFunction) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"<aggregate {self.name}>"


@dataclass(frozen=True)
class Extractor:
    """A name for a scalar of an aggregate, so that several of them keep one state (paper 1, 3.2).

    `approx_percentile(x, 95, 0.01)` is `percentile_of(approx_quantile(x, 0.01), 95)`: the first
    `arguments` of the call belong to the aggregate, the next `extras` follow the state in the call
    of the scalar, and the rest are parameters of the aggregate.
    """

    function: str
    """The scalar that takes the state."""
    aggregate: str
    arguments: int = 1
    extras: int = 0
    constants: tuple[Value, ...] = ()
    """Constants that follow the state in every call of the scalar, such as 50 for a median."""
    doc: str = ""


# ---- how an aggregate splits (dissertation 3.4.1; paper 1, 3.2) ----------------------------------

# Functions know no columns, so what they say of values is a `Term`: a small formula over numbered
# places.


@dataclass(frozen=True)
class Place:
    """The value at that place: an argument of the call, or a merged part."""

    number: int


@dataclass(frozen=True)
class Constant:
    value: Value
    type: Type


@dataclass(frozen=True)
class Apply:
    """A scalar function of terms."""

    function: Scalar
    terms: tuple[Term, ...]


Term: TypeAlias = Place | Constant | Apply
FIRST: Final = Place(0)


@dataclass(frozen=True)
class AggregatePart:
    """A value that each partial group carries, in one sub-aggregate or in several that only make
    sense together.
    """

    subs: tuple[tuple[AggregateFunction, tuple[Term, ...]], ...]
    """Sub-aggregates and their arguments, in terms of the arguments of the call; none for f(*)."""
    merge: AggregateFunction
    """The super-aggregate: over the values of the partial groups it gives that of the whole. Its
    arguments are all of the sub-aggregates."""


def single(sub: AggregateFunction, merge: AggregateFunction, *over: Term) -> AggregatePart:
    """A part that is one sub-aggregate over these arguments."""
    return AggregatePart(((sub, over),), merge)


@dataclass(frozen=True)
class Decomposition:
    parts: tuple[AggregatePart, ...]
    finish: Term = FIRST
    """The value of the call, in terms of the merged parts."""
    of_nothing: Value = None
    """The value over no tuples, where no merged part has one."""
