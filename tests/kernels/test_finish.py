from __future__ import annotations

import pyarrow as pa
from hypothesis import given, settings

from terascope.connectors.base import arrow_type
from terascope.functions.slots import COUNT, COUNT_OF
from terascope.kernels.merge.finish import columns
from terascope.kernels.tables.slots import Shape
from terascope.types import Type
from tests.kernels.some_groups import Case, Values, blocks_of, cases, dictionaries_for, same


def wanted_rows(case: Case) -> list[Values]:
    """The rows of the first worker: a slot that has seen nothing is NULL, a count 0."""
    counts = [kind in (COUNT, COUNT_OF) for kind in case.shape.slots]
    return [
        (*key, *(0 if v is None and c else v for v, c in zip(values, counts, strict=True)))
        for key, values in case.workers[0]
    ]


@settings(deadline=None, max_examples=60)
@given(cases())
def test_groups_become_typed_columns(case: Case) -> None:
    dictionaries = dictionaries_for(case.types)
    blocks = blocks_of(case.workers[0], case.shape, dictionaries)
    fields = case.fields
    batch = columns(blocks, fields, dictionaries)
    assert batch.schema.names == [f.name for f in fields.fields]
    rows = list(zip(*batch.to_pydict().values(), strict=True))
    wanted = wanted_rows(case)
    assert len(rows) == len(wanted)
    assert all(same(row, want) for row, want in zip(rows, wanted, strict=True))
    for field, found in zip(fields.fields, batch.schema.types, strict=True):
        own = found.value_type if pa.types.is_dictionary(found) else found
        assert own == arrow_type(field.type)


@settings(deadline=None, max_examples=30)
@given(cases())
def test_a_dictionary_column_has_no_value_twice_and_no_null_value(case: Case) -> None:
    dictionaries = dictionaries_for(case.types)
    blocks = blocks_of(case.workers[0], case.shape, dictionaries)
    for column in columns(blocks, case.fields, dictionaries).columns:
        if pa.types.is_dictionary(column.type):
            values = column.dictionary.to_pylist()
            assert None not in values
            assert len(set(values)) == len(values) <= len(column)


def test_bool_keys_are_plain() -> None:
    case = Case(Shape(1, (COUNT,)), (Type.BOOL,), [[((1, True), (2,)), ((1, None), (0,))]])
    dictionaries = dictionaries_for(case.types)
    batch = columns(blocks_of(case.workers[0], case.shape, dictionaries), case.fields, dictionaries)
    assert batch.column("k0").type == pa.bool_()
    assert batch.to_pydict() == {"tb": [1, 1], "k0": [True, None], "s0": [2, 0]}
