"""Functions as machine code, compiled by numba: the one place that wraps it.

In: a Python function over numpy arrays and numbers. Out: the same function as machine code. There
are three ways, for three uses:

- `compiled`: compiled at its first call, for the types of that call, and kept on disk for the next
  process. Without a folder that can be written it is compiled in each process.
- `compiled_for`: a kernel with one declared signature, so that arrays of Arrow, which numba takes
  for another type, do not make a second version of it. The kernels a process has loaded are listed
  for others (terascope.kernels.codegen.generated_modules).
- `inlined`: a part of other functions, compiled into each of them. It is not kept on disk by
  itself: a function loaded from disk can no longer be inlined.

All of them release the interpreter lock. Numba's cache notices changes of the file a function
stands in, not of the files it calls into.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from threading import Lock
from typing import Any, Literal, TypeVar, cast

import numba
import numpy as np
from numba import types

Function = TypeVar("Function", bound=Callable[..., Any])


def column(dtype: Any, dimensions: int = 1, layout: Literal["C", "A"] = "C") -> Any:
    """An array a kernel only reads; layout "A": its values need not stand side by side. Columns of
    Arrow are read-only, which numba takes for a type of its own: a kernel compiled for these takes
    the others, too.
    """
    return types.Array(numba.from_dtype(np.dtype(dtype)), dimensions, layout, readonly=True)


def output(dtype: Any, dimensions: int = 1) -> Any:
    """An array a kernel writes."""
    return types.Array(numba.from_dtype(np.dtype(dtype)), dimensions, "C")


def arrays_of(fields: Any, *parts: Any) -> Any:
    """A NamedTuple of arrays, which a kernel takes as one argument; `parts` are their types."""
    make: Any = types.NamedTuple
    return make(parts, fields)


INTEGER = types.int64
WORD = types.uint64
REAL = types.float64
BOOLEAN = types.boolean

loaded: list[tuple[str, str, tuple[Any, ...]]] = []
"""The kernels that this process has compiled or loaded: module, function, signature
(terascope.kernels.codegen.generated_modules)."""

compiling = Lock()
"""While a kernel may be compiled, no thread may call it: numba would take arguments of another type
for a reason to compile it once more. So no thread compiles a kernel that another has compiled."""


def compile_for(function: Any, *signature: Any) -> Any:
    """Compile a generated kernel for one signature, or load the code of an earlier process. The
    text of another query may be the same over columns of other types.
    """
    if signature in function.signatures:
        return function
    with compiling:
        if signature not in function.signatures:  # another thread may have been faster
            function.disable_compile(False)
            function.compile(signature)
            function.disable_compile()
            made = function.py_func
            loaded.append((made.__module__, made.__qualname__, signature))
    return function


def compiled(function: Function) -> Function:
    """A function called with arguments of any types, compiled for each combination of types."""
    try:
        return cast(Function, numba.njit(cache=True, nogil=True)(function))
    except RuntimeError:  # no folder to keep machine code in
        return inlined(function)


def inlined(function: Function) -> Function:
    """A part of other compiled functions."""
    return cast(Function, numba.njit(nogil=True)(function))


def compiled_for(*signature: Any) -> Callable[[Function], Function]:
    """A kernel that is compiled, for this signature only, when it is first called."""

    def decorate(function: Function) -> Function:
        dispatcher = compiled(function)
        ready: Any = None

        def load() -> None:
            nonlocal ready
            ready = compile_for(dispatcher, *signature)

        @wraps(function)
        def call(*args: Any) -> Any:
            if ready is None:  # asking the dispatcher costs microseconds, every time
                load()
            return ready(*args)

        call.load = load  # type: ignore[attr-defined]
        return cast(Function, call)

    return decorate
