"""The live view: tables on a terminal, lines elsewhere."""

from __future__ import annotations

import io
import sys
from dataclasses import replace

import pytest
from rich.console import Console

from terascope.cli.live_view import LiveView, plain_line
from terascope.cli.status_view import StatusView, tell_why
from terascope.operate.status import Status
from tests.operate.statuses import (
    CHOSEN,
    ETH0,
    ETH1,
    STATUS,
    TALKERS,
    TREE,
    TREED,
    WINDOWED,
    WINDOWS,
    run_status,
)

LINE = (
    "running: batch 1,204 in 0.31 s, 12,346 tuples/s, 1,221 rows, lag 40 s (talkers),"
    " backlog 3.4 MB, store 12.3 MB, memory 1.6 GB, 3 late, 2 malformed,"
    " eth1 is stalled: no file of the folder has grown for 35 s"
)


def console(terminal: bool, width: int = 100, height: int = 30) -> tuple[Console, io.StringIO]:
    file = io.StringIO()
    made = Console(
        file=file,
        force_terminal=terminal,
        width=width,
        height=height,
        highlight=False,
        color_system="standard" if terminal else None,
        legacy_windows=False,
        _environ={"TERM": "xterm"},
    )
    return made, file


def shown(status: Status, width: int = 100, height: int = 1000) -> list[str]:
    made, file = console(False, width)
    made.print(StatusView(status, height))
    return [line.rstrip() for line in file.getvalue().splitlines()]


def many(queries: int, sources: int) -> Status:
    return replace(
        STATUS,
        sources=tuple(replace(ETH0, name=f"eth{i}") for i in range(sources)),
        queries=tuple(
            replace(TALKERS, name=f"q{i}", lag_seconds=float(i % 10)) for i in range(queries)
        ),
    )


# ---- tables --------------------------------------------------------------------------------------


def test_the_tables() -> None:
    assert shown(STATUS) == [
        "flows.gsql  running  up 20 min  batch 1,204 in 0.31 s",
        "store 12.3 MB in 14 segments, 5 slices open  memory 512 MB + 1.1 GB workers",
        "eth1 is stalled: no file of the folder has grown for 35 s",
        "3 tuples of eth0 came too late (talkers 3)",
        "  give a --skew that is 4.0 s longer, or more: the clock had closed their window",
        "",
        "source    rate/s   watermark             backlog      late   malformed",
        "─" * 70,
        "eth0      12,346   2023-11-14 22:34:09       0 B         3           0",
        "eth1           0   2023-11-14 22:33:35    3.4 MB         0           2",
        "",
        "query         rows   closed until                 lag   pending   open   waits for",
        "─" * 82,
        "talkers      1,204   2023-11-14 22:33:30         40 s    1.2 MB      4   eth1",
        "scanners        17   170000124                  2.1 s       0 B      1",
    ]


def test_a_family_of_windows_has_a_line() -> None:
    planned = "windows on TCP.time by srcIP: 3 queries in 2 clusters of slices, planned 5 min ago"
    rates = "for 12,400 tuples a second (measured); now 11,900; 2 earlier still read"
    others = shown(STATUS, 200)
    assert shown(WINDOWED, 200) == [*others[:2], f"{planned} {rates}", *others[2:]]
    new = replace(WINDOWS, measured=False, rate_now=None, retired=0, clusters=WINDOWS.clusters[1:])
    assert shown(replace(STATUS, windows=(new,)), 200)[2] == (
        "windows on TCP.time by srcIP: 2 queries in 1 cluster of slices, planned 5 min ago"
        " for 12,400 tuples a second (assumed)"
    )
    alone = replace(WINDOWS, clusters=WINDOWS.clusters[:1])
    assert shown(replace(STATUS, windows=(alone,))) == shown(STATUS), "nothing to share"
    assert shown(replace(STATUS, windows=(new,) * 5))[3] == "4 more families of windows"


def test_a_tree_has_a_line() -> None:
    told = "tree of eth0: 3 aggregations, 1 intermediate, for 5 min, to save 42%"
    assert shown(TREED) == [
        *shown(STATUS)[:2],
        f"{told}; 1.6 hash operations a tuple",
        *shown(STATUS)[2:],
    ]
    new = replace(TREE, probes_per_tuple=None)
    assert shown(replace(STATUS, trees=(new,)))[2] == told
    assert shown(replace(STATUS, trees=(replace(TREE, tree=()),))) == shown(STATUS)
    assert shown(replace(STATUS, trees=(TREE,) * 5))[3] == "4 more trees"
    both = replace(TREE, tables=(("low1", "low2"),))
    line = "tree of eth0: 3 aggregations, 1 intermediate, 2 in 1 common tables, for 5 min"
    assert shown(replace(STATUS, trees=(both,)))[2].startswith(line)
    tables = replace(both, tree=(), intermediate=0)
    line = "tables of eth0: 3 aggregations, 2 in 1 common tables, for 5 min, to save 42%; 1.6"
    assert shown(replace(STATUS, trees=(tables,)))[2].startswith(line)


def test_a_strategy_has_a_line() -> None:
    chosen = "states of low1.quantile_len: gk_lite for 2 min: few full buffers"
    open_ = "states of low1.quantile_len: no strategy yet: by tasks"
    others = shown(STATUS)
    assert shown(CHOSEN) == [*others[:2], chosen, open_, *others[2:]]
    made, file = console(False)
    tell_why(made, CHOSEN, CHOSEN.queries[1], frozenset())
    assert file.getvalue().splitlines()[1:3] == [chosen, open_]


def test_widths_do_not_change_with_the_numbers() -> None:
    grown = replace(
        STATUS,
        sources=(replace(ETH0, rate=7.0, late=99_999), replace(ETH1, backlog_bytes=99_900_000)),
        queries=(
            replace(TALKERS, rows=3, lag_seconds=12_000.0, pending_bytes=5),
            STATUS.queries[1],
        ),
    )
    heads = (6, 7, 11, 12)
    before, after = shown(STATUS), shown(grown)
    assert before != after
    # The heads of both tables stand where they stood.
    assert [before[place] for place in heads] == [after[place] for place in heads]


@pytest.mark.parametrize(("queries", "sources"), [(40, 2), (3, 40), (100, 100), (1, 1)])
def test_no_higher_than_the_terminal(queries: int, sources: int) -> None:
    lines = shown(many(queries, sources), height=24)
    assert len(lines) <= 24
    assert len([line for line in lines if line.startswith("... ")]) == (
        (queries > 13) + (sources > 13)
    )


def test_those_that_lag_most_are_shown_in_the_order_of_the_set() -> None:
    lines = shown(many(40, 1), height=18)
    names = [line.split()[0] for line in lines if line.startswith("q") and line[1].isdigit()]
    assert len(names) == 5
    assert names == ["q8", "q9", "q19", "q29", "q39"]
    assert lines[-1] == "... 35 more"


def test_a_narrow_terminal_has_one_line_for_each() -> None:
    status = replace(STATUS, queries=(replace(TALKERS, name="a" * 60),))
    assert len(shown(status, width=40)) == 14
    assert all(len(line) <= 40 for line in shown(status, width=40))


def test_what_went_wrong_is_said_until_all_is_well() -> None:
    run = replace(run_status(), last_error="disk is full\nat line 3", restarts=1)
    restarting = shown(replace(STATUS, run=replace(run, state="restarting")))
    assert restarting[0].endswith("  1 restart")
    assert restarting[2] == "last error: disk is full"
    assert not any("disk" in line for line in shown(replace(STATUS, run=run)))
    stalled = tuple(replace(ETH1, name=f"eth{i}") for i in range(9))
    alarms = [line for line in shown(replace(STATUS, sources=stalled)) if "stalled" in line]
    assert alarms[1].startswith("eth1 is stalled: ")
    assert alarms[2:] == ["7 more sources are stalled"]


def test_names_are_no_markup() -> None:
    odd = replace(STATUS, queries=(replace(TALKERS, name="[red]x", closed_until="[b]"),))
    assert shown(odd)[13].startswith("[red]x ")
    assert "   [b]   " in shown(odd)[13]


# ---- live ----------------------------------------------------------------------------------------


def test_a_terminal_is_drawn_once_for_each_status() -> None:
    made, file = console(True)
    with LiveView(made) as view:
        begun = len(file.getvalue())
        view.show(STATUS)
        first = file.getvalue()[begun:]
        view.show(replace(STATUS, run=run_status(batch=1205)))
        second = file.getvalue()[begun + len(first) :]
    assert "batch 1,204" in first
    assert "batch 1,205" in second
    assert "\x1b[1A" in second  # the lines of the first are written over
    assert "\x1b[2J" not in file.getvalue()  # and the screen is never emptied
    assert "\x1b[1;31meth1 is stalled" in first


def test_rows_on_stdout_are_left_alone(capsys: pytest.CaptureFixture[str]) -> None:
    made, file = console(True)
    with LiveView(made) as view:
        view.show(STATUS)
        sys.stdout.write("a row\n")
    assert capsys.readouterr().out == "a row\n"
    assert "a row" not in file.getvalue()


def test_elsewhere_there_is_a_line_every_ten_seconds_and_at_news() -> None:
    made, file = console(False, width=40)
    now = [100.0]
    with LiveView(made, clock=lambda: now[0]) as view:

        def lines_after(seconds: float, status: Status) -> list[str]:
            now[0] += seconds
            before = len(file.getvalue())
            view.show(status)
            return file.getvalue()[before:].splitlines()

        assert lines_after(0, STATUS) == [LINE]
        assert lines_after(9.9, replace(STATUS, run=run_status(batch=1205))) == []
        assert len(lines_after(0.1, replace(STATUS, run=run_status(batch=1206)))) == 1
        well = replace(STATUS, sources=(ETH0,))
        (line,) = lines_after(1, well)
        assert "stalled" not in line
        restarting = replace(run_status(), state="restarting", restarts=1, last_error="no disk")
        (line,) = lines_after(1, replace(well, run=restarting))
        assert line.startswith("restarting: ")
        assert line.endswith(", 1 restart, last error: no disk")
        assert lines_after(1, replace(well, run=restarting)) == []
        assert len(lines_after(1, replace(well, run=restarting, parameters={"a": "1"}))) == 1


def test_quiet_says_nothing() -> None:
    for terminal in (True, False):
        made, file = console(terminal)
        with LiveView(made, quiet=True) as view:
            view.show(STATUS)
        assert file.getvalue() == ""


def test_a_line_before_anything_is_known() -> None:
    empty = Status(replace(run_status(batch=-1), state="starting"))
    assert plain_line(empty).startswith("starting: 0 tuples/s, 0 rows, store 0 B")
