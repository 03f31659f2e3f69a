"""Sessions of these tests do without machine code, which small data need not wait for."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module", autouse=True)
def _without_machine_code() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("TERASCOPE_KERNELS", "numpy")
        yield
