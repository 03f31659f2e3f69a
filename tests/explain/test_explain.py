"""Explain: golden text of a small set, and the same picture as JSON, Graphviz and HTML."""

from __future__ import annotations

import json
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser
from pathlib import Path

import pytest

from terascope.connectors.registry import parse_interface
from terascope.diagnostic import Source, SourceError
from terascope.explain import FORMATS, STAGES, Format, Stage, as_svg, explain, picture
from terascope.explain.to_svg import wrapped
from terascope.pipeline import Bindings, Compiled, compile_set
from tests.cli.calls import small_trace

SET = """\
DEFINE { query_name 'syns'; visibility 'internal'; }
SELECT time, srcIP, destIP FROM TCP WHERE flags & 0x12 = 2;

QUERY per_minute:
SELECT tb, destIP, count(*) AS cnt FROM syns GROUP BY time/60 AS tb, destIP;

QUERY pairs:
SELECT a.tb, a.destIP, a.cnt - b.cnt AS more
FROM per_minute a, per_minute b
WHERE a.tb = b.tb + 1 AND a.destIP = b.destIP;

QUERY busiest:
SELECT srcIP, count(*) AS cnt FROM UDP [RANGE '10 sec' SLIDE '5 sec']
WHERE destPort = $port
GROUP BY srcIP ORDER BY cnt DESC LIMIT 3;
"""

OPTIMIZED = """\
syns (internal): time UINT increasing clock(s), destIP IP
  Project time, destIP
    Filter flags & 18 = 2
      Scan TCP [time, destIP, flags]   -- time increasing, clock(s)

per_minute: tb UINT increasing, destIP IP, cnt ULLONG
  Project tb, destIP, count(*) AS cnt
    Aggregate by time DIV 60 AS tb, destIP: count(*)   -- groups close by tb
      Read syns

pairs: tb UINT increasing, destIP IP, more LLONG
  Project a.tb AS tb, a.destIP AS destIP, a.cnt - b.cnt AS more
    Join inner on a.tb = b.tb + 1 AND a.destIP = b.destIP   -- bounded by a.tb = b.tb + 1
      Project tb AS a.tb, destIP AS a.destIP, cnt AS a.cnt
        Read per_minute
      Project tb AS b.tb, destIP AS b.destIP, cnt AS b.cnt
        Read per_minute

busiest: srcIP IP, cnt ULLONG, wstart UINT increasing clock(s), wend UINT increasing clock(s)
  Project srcIP, count(*) AS cnt, wstart, wend
    Rank top 3 per (wstart, wend) by count(*) DESC, wend, wstart, srcIP, count(*)
      Aggregate by srcIP, wstart, wend: count(*)   -- groups close by wstart
        Window RANGE 10 SLIDE 5 ON time   -- wstart increasing, clock(s); wend increasing, clock(s)
          Filter destPort = $port
            Scan UDP [time, srcIP, destPort]   -- time increasing, clock(s)

parameters
  $port INT = 53
"""

READ_WITHOUT_SOURCE = """\
read packets:
  columns  time, destIP, flags, srcIP, destPort
  clocks   time
  bit 0    TCP (1 query)
  bit 1    flags & 18 = 2 (1 query)
"""

AST = """\
query1:
  QueryStatement
    query: Select
      items: Item alias='low'
        expr: Binary op='+'
          left: Name name='len' qualifier='S'
          right: Binary op='*'
            left: Literal kind='int' value=2
            right: Literal kind='int' value=3
      source: From
        items: StreamRef name='TCP' interface='eth0' alias='S'
      where: Binary op='='
        left: Name name='srcIP'
        right: Literal kind='ip' value=10.0.0.1
"""


def compiled(text: str = SET, *sources: str) -> Compiled:
    interfaces = {i.name: i for i in map(parse_interface, sources)}
    bindings = Bindings(interfaces=interfaces, parameters={"port": "53"})
    return compile_set(Source(text, "somewhere/set.gsql"), bindings)


# ---- text ----------------------------------------------------------------------------------------


def test_optimized_plan_as_text() -> None:
    assert explain(compiled(), "optimized") == OPTIMIZED


def test_plan_shortens_hidden_columns_and_long_lists() -> None:
    text = explain(compiled(), "plan")
    assert "Project time, srcIP, destIP +place\n" in text
    assert "... 22 more] +place" in text
    assert "#" not in text


def test_ast_shows_precedence() -> None:
    text = "SELECT S.len + 2 * 3 AS low FROM eth0.TCP S WHERE srcIP = 10.0.0.1"
    assert explain(compiled(text), "ast") == AST


def test_job_is_explained_without_sources() -> None:
    text = explain(compiled(), "job")
    assert text.startswith("operator ")
    assert READ_WITHOUT_SOURCE in text
    assert "per_minute: " in text
    assert "  kept   computed once, used 3 times\n" in text
    assert "  order  wstart, wend, cnt descending, srcIP\n" in text
    assert text.endswith("add --source\n")


def test_job_tells_files_and_that_a_compressed_one_is_one_partition(tmp_path: Path) -> None:
    small_trace(tmp_path / "a.pcap", 300)
    small_trace(tmp_path / "b.pcap.gz", 300)
    text = explain(compiled(SET, f"eth0=pcap:{tmp_path}"), "job")
    assert f"eth0        pcap:{tmp_path} (2 files, " in text
    assert "partitions  2\n" in text
    assert "note: b.pcap.gz: compressed, each file is read as one partition\n" in text


def test_job_of_a_missing_source_is_one_clear_mistake() -> None:
    with pytest.raises(SourceError, match=r"no such file or directory: 'no\.pcap'"):
        explain(compiled(SET, "pcap:no.pcap"), "job")


def test_a_join_with_a_table_needs_no_bound(tmp_path: Path) -> None:
    (tmp_path / "list.csv").write_text("10.0.0.1\n")
    text = (
        "DEFINE { query_name 'bad'; filename 'list.csv'; refresh_interval '60'; }\n"
        "WATCHLIST FIELDS { IP ip (key); };\n"
        "QUERY q: SELECT T.time, T.srcIP FROM TCP T, bad B WHERE T.srcIP = B.ip;"
    )
    source = Source(text, str(tmp_path / "set.gsql"))
    shown = explain(compile_set(source), "optimized")
    assert "needs no bound: one side is a table" in shown


def test_verbose_lists_the_rules_that_changed_something() -> None:
    text = "QUERY q: SELECT time, srcIP FROM TCP WHERE destPort = 40 + 40"
    shown = explain(compiled(text), "optimized", verbose=True)
    assert "fold_constants: q\n" in shown
    assert "-   Filter destPort = 40 + 40" in shown
    assert "+   Filter destPort = 80" in shown


def test_unknown_words_are_refused() -> None:
    with pytest.raises(ValueError, match="stages are ast, plan, optimized, split, job"):
        explain(compiled(), "thoughts")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="formats are text, json, dot, html"):
        explain(compiled(), "plan", "song")  # type: ignore[arg-type]


# ---- the picture ---------------------------------------------------------------------------------


def test_arrows_follow_the_tuples() -> None:
    arrows = picture(compiled(), "optimized").arrows
    assert arrows == (
        ("source:TCP", "stream:syns"),
        ("stream:syns", "stream:per_minute"),
        ("stream:per_minute", "stream:pairs"),
        ("source:UDP", "stream:busiest"),
    )


def test_json_has_its_documented_keys() -> None:
    told = json.loads(explain(compiled(), "job", "json"))
    assert told.keys() == {
        "terascope", "stage", "title", "parameters", "boxes", "arrows", "notes", "rules",
        "operators",
    }  # fmt: skip
    boxes = {box["id"]: box for box in told["boxes"]}
    assert boxes["source:packets"]["facts"]["bit 0"].startswith("TCP (")
    minute = boxes["stream:per_minute"]
    assert minute["columns"][0] == {
        "name": "tb", "type": "UINT", "order": "increasing", "clock": None,
    }  # fmt: skip
    assert minute["marks"] == ["output", "kept"]
    assert minute["query"].startswith("SELECT tb, destIP")
    (aggregate,) = minute["root"]["inputs"]
    assert aggregate["kind"] == "Read"
    low = boxes["stream:per_minute_low"]
    assert low["marks"] == ["low"]
    assert low["facts"]["table"].startswith("open, eager flush, at most ")
    assert low["root"]["kind"] == "Aggregate"
    assert low["root"]["remarks"] == ["groups close by tb"]
    assert told["parameters"] == [{"name": "port", "type": "INT", "value": "53"}]
    operators = {one["name"]: one for one in told["operators"]}
    group = operators["group per_minute_low"]
    assert (group["places"], group["reads"]) == (["task"], ["prefilter packets"])
    assert group["predicted"].endswith(" ns each")


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
def test_graphviz_reads_dot(stage: Stage) -> None:
    text = "QUERY `o\"d <d>`: SELECT time, '<&>\"\\' AS x FROM TCP WHERE srcIP = 10.0.0.1;" + SET
    given = explain(compiled(text), stage, "dot")
    done = subprocess.run(
        ["dot", "-Tplain"], input=given, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


@pytest.mark.parametrize("stage", STAGES)
def test_svg_is_well_formed_and_cards_do_not_overlap(stage: Stage) -> None:
    root = ElementTree.fromstring(as_svg(picture(compiled(), stage)))
    space = "{http://www.w3.org/2000/svg}"
    cards: list[tuple[int, int, int, int]] = []
    for group in root.iter(f"{space}g"):
        x, y = map(int, group.attrib["transform"][len("translate(") : -1].split())
        card = next(group.iter(f"{space}rect"))
        cards.append((x, y, x + int(card.attrib["width"]), y + int(card.attrib["height"])))
    assert len(cards) == len(picture(compiled(), stage).boxes)
    for number, (x1, y1, x2, y2) in enumerate(cards):
        for x3, y3, x4, y4 in cards[:number]:
            assert x2 <= x3 or x4 <= x1 or y2 <= y3 or y4 <= y1


class Tags(HTMLParser):
    """Open and close tags in balance, and nothing fetched from elsewhere."""

    VOID = frozenset({"meta", "rect", "path", "!doctype"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag not in ("script", "link", "img", "iframe")
        assert not {"src", "href"} & {name for name, _ in attrs}
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in self.VOID

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.parametrize("stage", STAGES)
def test_html_stands_alone(stage: Stage) -> None:
    page = explain(compiled("QUERY q: SELECT time, '<b>' AS x FROM TCP;" + SET), stage, "html")
    tags = Tags()
    tags.feed(page)
    assert tags.open == []
    assert "prefers-color-scheme: dark" in page
    assert "<title>set.gsql: " in page
    assert ("&lt;b&gt;" in page) == (stage != "partitions")  # which shows no expressions
    assert "<b>" not in page


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("stage", STAGES)
def test_an_empty_set_is_explained(stage: Stage, format: Format) -> None:
    assert explain(compiled("-- nothing\n"), stage, format)


# ---- wrapping ------------------------------------------------------------------------------------


def test_lines_are_broken_where_they_may_be() -> None:
    text = "Project srcIP, destIP, count(*) AS packets, " + "x" * 50
    lines = wrapped(text, 30)
    assert all(len(line) <= 30 for line in lines)
    assert lines[0] == "Project srcIP, destIP,"
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")
