"""Aggregation over finished groups, in a task: a query over a query, epoch by epoch.

In: batches of finished rows, all rows of an epoch in one task. Out: the groups of these rows, after
the last batch. It is the aggregation of the low level over other columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from terascope.execute.grouping.aggregator import Aggregator, group_fields
from terascope.execute.grouping.pending_tuples import PendingTuples
from terascope.execute.grouping.selections import Admission
from terascope.functions.overflow import Overflow
from terascope.kernels.codegen.program import functions, program
from terascope.kernels.columns.batch import TaskDictionaries, VectorBatch
from terascope.kernels.columns.dictionary import Dictionary
from terascope.kernels.merge.finish import columns as finished_columns
from terascope.kernels.merge.float_ranges import finished_blocks, has_ranges
from terascope.kernels.merge.groups import Block, GroupFields
from terascope.physical.row_pipeline import Regroup


class Regrouping:
    """The groups of one query over a query."""

    def __init__(self, regroup: Regroup, compiled: bool = True) -> None:
        query = regroup.query
        self._sums = regroup.sums
        self._program = program((), query.outputs)
        _, self._derive = functions(self._program, compiled=False)
        self._dictionaries = TaskDictionaries()
        self._chosen = Admission(0, (0,) * len(query.slots))
        self._pending_tuples = PendingTuples([(self._chosen, query)])
        self._aggregator = Aggregator(query, self._dictionaries, compiled)

    def take(self, columns: pa.RecordBatch) -> None:
        batch = VectorBatch(columns, self._dictionaries, self._program, self._derive)
        self._pending_tuples.add(batch, {0: np.arange(len(batch), dtype=np.int32)})
        self._aggregator.take(self._pending_tuples.take(), self._chosen)
        self._aggregator.settle()

    @property
    def fields(self) -> GroupFields:
        fields = group_fields(self._aggregator.query)
        return replace(fields, sums=self._sums) if self._sums else fields

    @property
    def dictionaries(self) -> Sequence[Dictionary]:
        """The dictionaries of the keys of the groups."""
        return self._aggregator.key_dictionaries

    def results(self) -> Iterator[pa.RecordBatch]:
        """The groups of all rows."""
        shape = self.fields.shape
        released = list(self._aggregator.release(None))
        several = any(has_ranges(one.block.rows, shape) for one in released)
        if not several and not all(one.whole for one in released):
            raise Overflow(self.fields.any_sum)
        for block in finished_blocks((one.block for one in released), shape, several):
            yield finished_columns([block], self.fields, self.dictionaries)

    def blocks(self) -> list[Block]:
        """The groups in order of time; a group may occur twice, in parts that should not be merged
        before they are windows.
        """
        blocks = [released.block for released in self._aggregator.release(None)]
        # Parts of several ranges are released as they came.
        several = any(has_ranges(block.rows, self.fields.shape) for block in blocks)
        return [Block.together(blocks).in_order()] if several else blocks
