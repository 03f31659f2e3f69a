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
from dataclasses import fields, is_dataclass
from typing import Any

from terascope.explain.model import Picture
from terascope.version import VERSION

NAMES = {"text": "query", "children": "inputs", "cost": "predicted"}
"""Keys that differ from the names of fields."""
PAIRS = ("facts", "measured")
"""Fields of words and values, which become objects."""


def as_json(picture: Picture) -> str:
    document = {"terascope": VERSION, **json_value(picture), "arrows": picture.arrows}
    document["parameters"] = [
        {"name": name, "type": type, "value": value} for name, type, value in picture.parameters
    ]
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def json_value(value: Any) -> Any:
    """A part of a picture as JSON has it: dataclasses become objects, tuples lists."""
    if isinstance(value, tuple):
        return [json_value(one) for one in value]
    if not is_dataclass(value):
        return value
    parts = {f.name: getattr(value, f.name) for f in fields(value)}
    return {
        NAMES.get(name, name): dict(part) if name in PAIRS else json_value(part)
        for name, part in parts.items()
    }
