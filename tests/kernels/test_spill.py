from __future__ import annotations

from pathlib import Path

import pytest

from terascope.diagnostic import OutputError
from terascope.execute.spill import Spill


def test_payloads_come_back_partition_by_partition_and_no_file_can_be_seen(tmp_path: Path) -> None:
    spill = Spill(tmp_path, 4)
    for i in range(100):
        spill.append(i % 3, bytes([i]) * i)
    assert spill.bytes == sum(range(100))
    read = [list(payloads) for payloads in spill.partitions()]
    assert read == [[bytes([i]) * i for i in range(part, 100, 3)] for part in range(3)]
    assert list(tmp_path.iterdir()) == []
    spill.close()


def test_a_folder_that_is_not_there_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(OutputError) as raised:
        Spill(tmp_path / "nowhere", 2).append(0, b"some")
    assert str(raised.value) == (
        f"groups do not fit in memory and cannot be kept in '{tmp_path / 'nowhere'}' meanwhile: "
        "no such file or directory"
    )
