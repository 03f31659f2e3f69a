"""A disk that is full in the middle of a stream stops it with a clear line; when there is room
again it goes on from its checkpoint, and every row is there once, in order.

The disk is a small tmpfs with the checkpoint and the results on it, which only root can mount. It
is filled to a few free pages before some batches, so that each kind of file is the one that finds
no room: segments, parts, manifests, intents, states, the journal of the sources. Every tuple that
goes in is used: in = used + late + malformed, of which the last two are none.
"""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from terascope.connectors.live import Speed
from terascope.diagnostic import OutputError, StreamError
from tests.properties.plain_streams import limited_to
from tests.properties.stream_cases import make_stream_case
from tests.properties.stream_results import assert_counted, assert_delivered
from tests.properties.stream_runs import CaseRuns

QUERIES, ROWS = 5, 60
PAGE = 4096
MOST_BATCHES = 60
SEEDS = range(6)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(folder)]
    try:
        made = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as problem:
        pytest.skip(f"there is no mount here: {problem}")
    if made.returncode:
        pytest.skip(f"a disk of one's own cannot be mounted here: {made.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(disk: Path, pages: int) -> Path:
    """All but some pages are taken."""
    filler = disk / "filler"
    free = os.statvfs(disk).f_bavail - pages
    with filler.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, max(1, free) * PAGE)
    return filler


@pytest.mark.parametrize("seed", SEEDS)
def test_a_full_disk_loses_nothing(seed: int, disk: Path, tmp_path: Path) -> None:
    case = make_stream_case(seed, tmp_path / "in", QUERIES, ROWS)
    rng = random.Random(seed)
    runs = CaseRuns(case, disk)
    live = runs.live(Speed.parse("max"), until_idle=True)
    stopped: list[str] = []
    is_full = False
    with limited_to(case.portion):
        run = runs.opened(live, 2)
        for _ in range(MOST_BATCHES):
            if run.ended:
                break
            # After a batch that found no room, one that does.
            filler = fill(disk, rng.randrange(0, 6)) if is_full else None
            is_full = not is_full
            try:
                run.step()
            except (OutputError, StreamError) as problem:
                stopped.append(str(problem))
                run.close()
                assert filler is not None
                filler.unlink()
                run = runs.opened(live, 2)
                continue
            finally:
                if filler is not None:
                    filler.unlink(missing_ok=True)
        assert run.ended
        assert_counted(case, run.runner.pipeline.state.seen)
        run.close()
    assert stopped, "no batch met a full disk"
    assert all("no space left" in text for text in stopped), stopped
    assert_delivered(case.expected(), disk / "out", case)
