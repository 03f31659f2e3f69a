"""Kernels that several processes compile are all there afterwards, whatever becomes of one."""

from __future__ import annotations

from pathlib import Path

import pytest

from terascope.execute import prepare as compilers
from terascope.execute.prepare import Compilers, Kernel, make, read_kernel, written_kernel
from terascope.files import CACHE_VARIABLE
from terascope.functions.aggregates.extremes import MAX_INT
from terascope.functions.slots import COUNT
from terascope.kernels.codegen.generated_modules import cache_folder, load_module
from terascope.kernels.tables.open_table_source import insert_kernel, update_kernel
from terascope.kernels.tables.slots import Shape

KERNELS: list[Kernel] = [(insert_kernel, (Shape(keys, (COUNT,)),)) for keys in range(1, 9)]


@pytest.fixture(autouse=True)
def _kernel_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "kernels"))
    forget_kernels()


def forget_kernels() -> None:
    for made in (load_module, insert_kernel):
        made.cache_clear()


def on_disk() -> set[str]:
    folder = cache_folder()
    assert folder is not None
    return {path.name for path in folder.rglob("*.nbc")}


def compiled(processes: int) -> tuple[list[Kernel], int]:
    """What this process made, in order, and how many processes it started."""
    made: list[Kernel] = []

    def make_here(kernel: Kernel) -> None:
        made.append(kernel)
        make(kernel)

    several = Compilers(processes, lambda taken: None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compilers, "make", make_here)
        several.compile(KERNELS)
    return made, several.started


def ready() -> bool:
    """Whether a new process would find all kernels in the cache."""
    before = on_disk()
    forget_kernels()
    for kernel in KERNELS:
        make(kernel)
    return on_disk() == before


@pytest.fixture
def _all_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compilers, "SLOW_S", 0.0)


@pytest.mark.usefixtures("_all_slow")
def test_another_process_compiles_some() -> None:
    made, started = compiled(2)
    assert started == 1
    assert len(made) < 2 * len(KERNELS), "this process compiled all of them"
    assert made[-len(KERNELS) :] == KERNELS
    assert ready()


@pytest.mark.usefixtures("_all_slow")
def test_a_process_that_fails_is_done_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compilers, "WORKER", "terascope.kernels.of_that_name_there_is_none")
    _, started = compiled(2)
    assert started == 1
    assert ready()


def test_one_process_starts_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compilers, "SLOW_S", 0.0)
    made, started = compiled(1)
    assert started == 0
    assert made == [*KERNELS, *KERNELS]


@pytest.mark.parametrize(
    "kernel", [*KERNELS, (update_kernel, (Shape(2, (COUNT, MAX_INT)), True, False))]
)
def test_a_kernel_is_read_as_it_was_written(kernel: Kernel) -> None:
    assert read_kernel(written_kernel(kernel)) == kernel
