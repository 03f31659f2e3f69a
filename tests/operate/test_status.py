"""A status as JSON and back."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from terascope.diagnostic import StreamError
from terascope.operate.status import RunStatus, Status
from tests.operate.statuses import CHOSEN, ETH1, STATUS, TALKERS, TREED, WINDOWED


def test_json_and_back_is_the_same() -> None:
    text = STATUS.to_json()
    assert "\n" not in text
    again = Status.from_json(text)
    assert again == STATUS
    assert Status.from_json(TREED.to_json()) == TREED
    assert Status.from_json(WINDOWED.to_json()) == WINDOWED
    assert Status.from_json(CHOSEN.to_json()) == CHOSEN
    assert again.queries[0].holds[0].input == "eth1"
    assert again.traces[0].hops[1][0] == "low1"
    # Numbers stay exact, and of their kind: nanoseconds do not fit into a float.
    odd = replace(ETH1, watermarks={"a": 2**62 + 1, "b": 0.5, "c": "1.5"}, watermark_ns=2**60 + 1)
    assert Status.from_json(replace(STATUS, sources=(odd,)).to_json()).sources == (odd,)


def test_names_in_json_are_those_of_the_fields() -> None:
    told = json.loads(STATUS.to_json())
    assert told["run"]["state"] == "running"
    assert told["sources"][1]["stalled"] == "no file of the folder has grown for 35 s"
    assert told["queries"][0]["holds"][0] == {
        "input": "eth1",
        "watermark": "2023-11-14 22:33:35",
        "behind_seconds": 35.0,
        "reason": "",
    }


def test_a_run_of_another_version_can_be_read() -> None:
    told = json.loads(STATUS.to_json())
    told["moon"] = "full"
    told["run"]["tide"] = 3
    del told["traces"], told["run"]["parameter_edges"]
    assert Status.from_json(json.dumps(told)) == replace(STATUS, traces=())


def test_what_is_no_status_is_refused_with_the_place() -> None:
    told = json.loads(STATUS.to_json())
    told["run"]["state"] = "asleep"
    with pytest.raises(StreamError, match=r"run\.state"):
        Status.from_json(json.dumps(told))
    with pytest.raises(StreamError, match="no status"):
        Status.from_json(b"<html>")


def test_streams_and_sources_by_name() -> None:
    assert STATUS.query("talkers") is TALKERS
    assert STATUS.source("eth1") is ETH1
    assert STATUS.query("eth1") is None
    assert STATUS.source("talkers") is None


def test_a_run_needs_few_facts_to_begin_with() -> None:
    run = RunStatus(1, 0.0, "a.gsql", "state", None, -1, 0.0, "starting", 0.0)
    assert Status.from_json(Status(run).to_json()) == Status(run)
