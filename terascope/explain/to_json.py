"""A picture as JSON, for other programs.

Keys, which later versions keep and only add to:

    terascope   the version that wrote it
    stage       ast, plan, optimized, split, job or stream
    title       where the query set came from
    parameters  [{name, type, value}]
    boxes       [{id, name, kind, marks, columns, facts, notes, query, root}]
                kind: source, stream or statement; facts: {word: value}; query: canonical GSQL
    columns     [{name, type, order, clock}], order and clock null where there is none
    root        an operator or null: {kind, label, remarks, columns, reads, inputs: [operators]}
                reads: ids of boxes
    arrows      [[id, id]], in the direction tuples flow
    notes       [text]
    rules       [{rule, streams, changes}], with --verbose
    operators   [{name, places, does, reads, predicted, choice, measured}], of a job;
                measured: {word: value}, after a run
"""

from __future__ import annotations

import json
from typing import Any

from terascope.explain.model import Box, Picture, PictureNode
from terascope.version import VERSION


def as_json(picture: Picture) -> str:
    document = {
        "terascope": VERSION,
        "stage": picture.stage,
        "title": picture.title,
        "parameters": [
            {"name": name, "type": type, "value": value} for name, type, value in picture.parameters
        ],
        "boxes": [box_object(box) for box in picture.boxes],
        "arrows": [list(arrow) for arrow in picture.arrows],
        "notes": list(picture.notes),
        "rules": [
            {"rule": step.rule, "streams": list(step.streams), "changes": list(step.changes)}
            for step in picture.rules
        ],
        "operators": [
            {
                "name": line.name,
                "places": list(line.places),
                "does": line.does,
                "reads": list(line.reads),
                "predicted": line.cost,
                "choice": line.choice,
                "measured": dict(line.measured),
            }
            for line in picture.operators
        ],
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def box_object(box: Box) -> dict[str, Any]:
    return {
        "id": box.id,
        "name": box.name,
        "kind": box.kind,
        "marks": list(box.marks),
        "columns": [
            {"name": c.name, "type": c.type, "order": c.order, "clock": c.clock}
            for c in box.columns
        ],
        "facts": dict(box.facts),
        "notes": list(box.notes),
        "query": box.text,
        "root": None if box.root is None else node_object(box.root),
    }


def node_object(node: PictureNode) -> dict[str, Any]:
    return {
        "kind": node.kind,
        "label": node.label,
        "remarks": list(node.remarks),
        "columns": list(node.columns),
        "reads": list(node.reads),
        "inputs": [node_object(child) for child in node.children],
    }
