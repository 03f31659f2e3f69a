"""A picture as one HTML page that needs nothing else: the drawing, the queries, and the text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from terascope.explain.model import Box, OperatorLine, Picture
from terascope.explain.to_svg import FONT, as_svg
from terascope.explain.to_text import as_text
from terascope.version import VERSION

STYLE = f"""
:root {{ color-scheme: light dark; --bg:#fff; --ink:#1f2430; --soft:#667085; --line:#e1e5ec;
  --code:#f6f7f9; --good:#1a7f4b; }}
@media (prefers-color-scheme: dark) {{ :root {{ --bg:#14171d; --ink:#e4e7ec; --soft:#98a2b3;
  --line:#2c323d; --code:#1b1f27; --good:#5fd39a; }} }}
body {{ margin:0 auto; padding:2rem clamp(1rem,4vw,3rem) 4rem; background:var(--bg);
  color:var(--ink); font:15px/1.5 system-ui, sans-serif; }}
h1 {{ font-size:1.5rem; margin:0; }} h2 {{ font-size:1.1rem; margin:2.5rem 0 .75rem; }}
h3 {{ font:600 .95rem {FONT}; margin:1.5rem 0 .4rem; }}
.sub, .mark {{ color:var(--soft); }} .mark {{ font-weight:400; margin-left:.5rem; }}
.drawing {{ overflow:auto; border:1px solid var(--line); border-radius:10px; padding:1rem;
  margin-top:1.25rem; }}
pre {{ font:13px/1.5 {FONT}; background:var(--code); border:1px solid var(--line);
  border-radius:8px; padding:.8rem 1rem; overflow:auto; margin:0; }}
table {{ border-collapse:collapse; font:13px/1.5 {FONT}; margin:.6rem 0 0; }}
td, th {{ text-align:left; padding:.15rem 1.2rem .15rem 0; border-bottom:1px solid var(--line); }}
th {{ font-weight:600; color:var(--soft); }} .order {{ color:var(--good); }}
.figure {{ text-align:right; }} .operators span {{ border-radius:6px; padding:0 .45rem;
  background:var(--code); }} .operators .task {{ color:var(--good); }}
summary {{ cursor:pointer; color:var(--soft); margin-top:2.5rem; }}
"""
STAGES = {
    "ast": "what the parser read",
    "plan": "the plan, as the queries say it",
    "optimized": "the plan, after all rules",
    "split": "what runs next to the sources, and what above",
    "job": "what will be done",
    "advise": "where each part runs, under the recommended partitioning",
}


def as_html(picture: Picture) -> str:
    ran = any(operator.measured for operator in picture.operators)
    about = "what was done" if ran else STAGES.get(picture.stage, picture.stage)
    queries = "".join(query_section(box) for box in picture.boxes if box.text)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(picture.title)}: {escape(picture.stage)}</title>
<style>{STYLE}</style>
</head>
<body>
<h1>{escape(picture.title)}</h1>
<div class="sub">{escape(about)} &middot; terascope {escape(VERSION)}</div>
{"".join(f'<p class="sub">{escape(note)}</p>' for note in picture.notes)}
<div class="drawing">{as_svg(picture)}</div>
{operator_section(picture)}
{parameter_table(picture)}
<h2>Queries</h2>
{queries}
<details><summary>The same as text</summary><pre>{escape(as_text(picture))}</pre></details>
</body>
</html>
"""


def table(head: Sequence[str], rows: Iterable[str], kind: str = "") -> str:
    """A table; `rows`: the cells of each, as HTML."""
    names = "".join(f"<th>{escape(name)}</th>" for name in head)
    body = "".join(f"<tr>{cells}</tr>" for cells in rows)
    return f"<table{kind}><tr>{names}</tr>{body}</table>"


def operator_section(picture: Picture) -> str:
    """The physical operators as a table."""
    if not picture.operators:
        return ""
    words = list(dict.fromkeys(word for line in picture.operators for word, _ in line.measured))
    rows = (operator_cells(line, words) for line in picture.operators)
    head = ("operator", "where", "predicted", *words, "")
    return "<h2>Operators</h2>" + table(head, rows, " class='operators'")


def operator_cells(line: OperatorLine, words: list[str]) -> str:
    places = " ".join(f'<span class="{escape(p)}">{escape(p)}</span>' for p in line.places)
    figures = dict(line.measured)
    cells = "".join(f'<td class="figure">{escape(figures.get(word, ""))}</td>' for word in words)
    return (
        f'<td>{escape(line.name)}</td><td title="{escape(line.choice)}">{places}</td>'
        f"<td>{escape(line.cost)}</td>{cells}<td class='sub'>{escape(line.does)}</td>"
    )


def parameter_table(picture: Picture) -> str:
    if not picture.parameters:
        return ""
    rows = (
        f"<td>${escape(name)}</td><td>{escape(type)}</td><td>{escape(value)}</td>"
        for name, type, value in picture.parameters
    )
    return "<h2>Parameters</h2>" + table(("name", "type", "value"), rows)


def query_section(box: Box) -> str:
    marks = f'<span class="mark">{escape(", ".join(box.marks))}</span>' if box.marks else ""
    rows = (
        f"<td>{escape(c.name)}</td><td>{escape(c.type)}</td>"
        f'<td class="order">{escape(c.order or "")}'
        f"{escape(f' clock({c.clock})') if c.clock else ''}</td>"
        for c in box.columns
    )
    columns = table(("column", "type", "order"), rows) if box.columns else ""
    return (
        f"<section><h3>{escape(box.name)}{marks}</h3><pre>{escape(box.text)}</pre>"
        f"{columns}</section>"
    )
