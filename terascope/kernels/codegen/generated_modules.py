"""Generated kernels as modules on disk (dissertation 3.4.3, machine code generation).

In: the Python source of a kernel module, generated for a query set. Out: the module, its functions
compiled by numba. The source is written to a cache folder under the hash of its text, so that
numba's own on-disk cache finds the machine code of an earlier run, in whatever process or task.

Compiling takes about a second, longer than Python takes for a few hundred rows: a `GeneratedKernel`
that nobody has compiled is interpreted as long as its rows are few.

To load a kernel from disk takes milliseconds, and a large query set has dozens of them. So the
processes of a session note what they have loaded, a line for each kernel in a file of the session,
and the process that forks workers loads the same kernels beforehand.
"""

from __future__ import annotations

import base64
import hashlib
import importlib
import importlib.util
import os
import pickle
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import numba
import numpy as np

from terascope.files import private_cache
from terascope.machine_code import compile_for, loaded

HEADER = """\"\"\"Generated. Delete it whenever you like.\"\"\"
import math

import numpy as np
from numba import njit

kernel = njit(cache={cached}, nogil=True, error_model="numpy")
# Counting references to the arrays at every call would cost more than evicting a group.
inner = njit(nogil=True, error_model="numpy", _nrt=False)
inlined = njit(nogil=True, error_model="numpy", _nrt=False, forceinline=True)
"""
PREFIX = "terascope_kernel_"


INTERPRETED = """import math

import numpy as np


def kernel(function):
    return function
"""
FEW_ROWS: Final = 500
"""Rows that a process interprets; each takes tens of microseconds."""


def cache_folder() -> Path | None:
    """The folder of kernels; None when no folder is writable by this user alone."""
    return private_cache(f"kernels-{numba.__version__}")


def indent(lines: Iterable[str], depth: int = 1) -> list[str]:
    """Lines of a generated function, so many levels deep."""
    return ["    " * depth + line for line in lines]


def module_name(source: str) -> str:
    return f"{PREFIX}{hashlib.sha256(source.encode()).hexdigest()[:24]}"


def load_kernel(module: str, function: str, signature: tuple[Any, ...]) -> None:
    """Load a kernel as `loaded` has it; nothing happens when it is not there any more."""
    if not module.startswith(PREFIX):
        load = getattr(getattr(importlib.import_module(module), function, None), "load", None)
        if load is not None:
            load()
        return
    folder = cache_folder()
    path = None if folder is None else folder / f"{module}.py"
    if path is not None and path.exists():
        text = path.read_text(encoding="utf-8").removeprefix(HEADER.format(cached=True))
        compile_for(getattr(load_module(text), function), *signature)


@cache
def load_module(source: str) -> ModuleType:
    """The module of a generated source, loaded once per process."""
    folder = cache_folder()
    text = HEADER.format(cached=folder is not None) + source
    name = module_name(text)
    if folder is None:
        module = ModuleType(name)
        exec(compile(text, f"<{name}>", "exec"), module.__dict__)
        return module
    path = folder / f"{name}.py"
    if not path.exists():
        handle, temporary = tempfile.mkstemp(prefix=f".{name}.", dir=folder)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(temporary).replace(path)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


VARIABLE: Final = "TERASCOPE_KERNELS_USED"
"""Names the file; it stands in a folder that only its owner can read and write."""

_told = 0
"""The number of entries of `loaded` that are in the file, or came from there."""
_read = 0
"""The position up to which the file was read."""
_known: set[str] = set()


def report_used() -> None:
    """Append the kernels that this process has loaded since the last call."""
    global _told
    new, _told = loaded[_told:], len(loaded)
    path = os.environ.get(VARIABLE)
    if path is None or not new:
        return
    lines = "".join(base64.b64encode(pickle.dumps(kernel)).decode() + "\n" for kernel in new)
    with Path(path).open("a", encoding="ascii") as file:
        file.write(lines)


def load_used() -> None:
    """Load the kernels that other processes have reported since the last call."""
    global _told, _read
    path = os.environ.get(VARIABLE)
    try:
        if path is None or Path(path).stat().st_size <= _read:
            return
        with Path(path).open("rb") as file:
            file.seek(_read)
            text = file.read()
        complete = text.rfind(b"\n") + 1
        _read += complete
        for line in text[:complete].decode("ascii").splitlines():
            if line not in _known:
                _known.add(line)
                load_kernel(*pickle.loads(base64.b64decode(line)))
    except Exception:  # whoever needs a kernel loads it; nobody must fail of one that is not needed
        traceback.print_exc(file=sys.stderr)
    _told = len(loaded)


class GeneratedKernel:
    """A generated function, as machine code or, for few rows, interpreted."""

    def __init__(self, function: str, body: Sequence[str], *types: Any) -> None:
        """`function`: its name and arguments. `types`: those of the arguments."""
        self._name = function.partition("(")[0]
        self._source = "\n".join(["", "", "@kernel", f"def {function}:", *indent(body), ""])
        self._types = types
        self._compiled: Callable[..., Any] | None = None
        self._interpreted: Callable[..., Any] | None = None
        self._rows = 0

    def compile(self) -> Callable[..., Any]:
        """The function as machine code, compiled now unless an earlier process did."""
        if self._compiled is None:
            made = getattr(load_module(self._source), self._name)
            self._compiled = compile_for(made, *self._types)
        return self._compiled

    def over(self, rows: int) -> Callable[..., Any]:
        """The function to call for so many rows."""
        if self._compiled is not None:
            return self._compiled
        self._rows += rows
        if self._rows > FEW_ROWS or self._is_kept():
            return self.compile()
        if self._interpreted is None:
            self._interpreted = interpreted(self._source, self._name)
        return self._interpreted

    def _is_kept(self) -> bool:
        """Whether some process has compiled this source, or is about to."""
        folder, name = cache_folder(), module_name(HEADER.format(cached=True) + self._source)
        return folder is not None and (folder / f"{name}.py").exists()


def interpreted(source: str, function: str) -> Callable[..., Any]:
    """A function of a generated source as it stands. Integers wrap around as in machine code."""
    made: dict[str, Any] = {}
    exec(compile(INTERPRETED + source, "<generated>", "exec"), made)

    def call(*args: Any) -> Any:
        with np.errstate(all="ignore"):
            return made[function](*args)

    return call
