"""Kernels that several processes compile are all there afterwards, whatever becomes of one."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from terascope.execute import prepare
from terascope.execute.prepare import Kernel, compile_all, make, start_workers
from terascope.files import CACHE_VARIABLE
from terascope.functions.aggregates.folding import MAX_INT
from terascope.functions.slots import COUNT
from terascope.kernels.codegen.generated_modules import cache_folder, load_module
from terascope.kernels.tables.open_table import insert_kernel, update_kernel
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


def ready() -> bool:
    """Whether a new process would find all kernels in the cache."""
    before = on_disk()
    forget_kernels()
    for kernel in KERNELS:
        make(kernel)
    return on_disk() == before


def test_another_process_compiles() -> None:
    (worker,) = start_workers(KERNELS, 2)
    assert worker.wait() == 0
    assert on_disk()
    assert ready()


def test_kernels_are_ready_whoever_compiled_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepare, "SLOW_S", 0.0)
    told: list[int] = []
    compile_all(KERNELS, 2, told.append)
    assert told == list(range(1, len(KERNELS) + 1))
    assert ready()


def test_a_process_that_fails_is_done_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepare, "SLOW_S", 0.0)
    monkeypatch.setattr(prepare, "WORKER", "terascope.kernels.of_that_name_there_is_none")
    (worker,) = start_workers(KERNELS, 2)
    assert worker.wait() != 0
    compile_all(KERNELS, 2, lambda taken: None)
    assert ready()


def test_one_process_starts_no_other() -> None:
    assert start_workers(KERNELS, 1) == []


@pytest.mark.parametrize(
    "kernel", [*KERNELS, (update_kernel, (Shape(2, (COUNT, MAX_INT)), True, False))]
)
def test_a_kernel_is_read_as_it_was_written(kernel: Kernel) -> None:
    assert pickle.loads(pickle.dumps(kernel)) == kernel
