"""A picture as text: the form a terminal shows and golden tests hold."""

from __future__ import annotations

from collections.abc import Iterator

from terascope.explain.model import Box, OperatorLine, Picture, RuleStep

INDENT = "  "


def as_text(picture: Picture) -> str:
    if picture.stage == "split":
        return as_script(picture)
    # A source of a plan is no more than a name, which its scans say already.
    shown = [box for box in picture.boxes if box.root is not None or box.facts]
    blocks = ["\n".join(box_lines(box, picture.stage)) for box in shown]
    if picture.operators:
        blocks.insert(0, "\n".join(operator_table(picture.operators)))
    if picture.parameters:
        told = [f"{INDENT}${n} {t} = {v}" for n, t, v in picture.parameters]
        blocks.append("\n".join(["parameters", *told]))
    if picture.rules:
        blocks.append("\n".join(rule_lines(picture.rules)))
    blocks += [f"note: {note}" for note in picture.notes]
    return "\n\n".join(blocks) + "\n"


def box_lines(box: Box, stage: str) -> Iterator[str]:
    marks = [mark for mark in box.marks if mark == "internal"]
    mark = f" ({', '.join(marks)})" if marks else ""
    columns = ", ".join(map(str, box.columns))
    word = "read " if box.kind == "source" else ""
    yield f"{word}{box.name}{mark}:" + (f" {columns}" if columns else "")
    if box.kind == "source" or stage == "job":
        width = max((len(word) for word, _ in box.facts), default=0)
        for word, value in box.facts:
            yield f"{INDENT}{word:<{width}}  {value}"
    yield from (f"{INDENT}note: {note}" for note in box.notes)
    if box.root is not None:
        yield from box.root.lines(1, remarks=True)


def operator_table(lines: tuple[OperatorLine, ...]) -> Iterator[str]:
    """The operators in columns: name, places, what they do, predicted and measured cost."""
    measured = any(line.measured for line in lines)
    head = ("operator", "where", "predicted", *(("measured",) if measured else ()), "")
    rows = [head]
    for line in lines:
        figures = ", ".join(f"{word} {value}" for word, value in line.measured)
        told = (figures,) if measured else ()
        rows.append((line.name, "|".join(line.places), line.cost, *told, line.does))
    widths = [max(len(row[i]) for row in rows) for i in range(len(head) - 1)]
    for row in rows:
        cells = [f"{cell:<{width}}" for cell, width in zip(row, widths, strict=False)]
        yield "  ".join([*cells, row[-1]]).rstrip()


def rule_lines(steps: tuple[RuleStep, ...]) -> Iterator[str]:
    yield "rules, in the order they changed something"
    for number, step in enumerate(steps, 1):
        yield f"{number:>3}. {step.rule}: {', '.join(step.streams)}"
        yield from (f"     {line}" for line in step.changes)


COMMENT = "-- "


def as_script(picture: Picture) -> str:
    """A split plan as a GSQL script that can be run; costs and reasons are comments."""
    blocks = ["\n".join(f"{COMMENT}{n}" for n in note.splitlines()) for note in picture.notes]
    blocks += ["\n".join(statement(box)) for box in picture.boxes if box.root is not None]
    return "\n\n".join(blocks) + "\n"


def statement(box: Box) -> Iterator[str]:
    facts = dict(box.facts)
    if "form" in facts:
        yield f"{COMMENT}low: {facts['form']}, {facts['cost']}, read by {facts['read by']}"
    else:
        yield f"{COMMENT}{', '.join(mark for mark in box.marks if mark != 'output')}"
    yield from (f"{COMMENT}  {note}" for note in box.notes)
    if box.text:
        yield box.text
    elif box.root is not None:
        yield f"{COMMENT}{box.name} has no words in GSQL:"
        yield from (f"{COMMENT}{line}" for line in box.root.lines(1))
