"""One pass over CSV text: where its records and the wanted fields of each lie.

In: a block of bytes that begins at a record.
Out: for each record its start, end, number of fields and status, and the span of each wanted field.

The dialect is RFC 4180 read generously: a quote opens only at the start of a field and is written
twice inside it, lines end in LF or CRLF, empty lines and comment lines are skipped. Where a record
ends depends on nothing but the bytes from its start on, at most `max_record` of them: so every
reader cuts a file into the same records, whatever blocks and splits it reads, and a quote that is
never closed costs its own line, not the rest of the file.
"""

from __future__ import annotations

from terascope.connectors.tables import records
from terascope.connectors.tables.kernels import CR, DOUBLED_QUOTES, LF, PLAIN, Bytes, Int32s
from terascope.machine_code import compiled


@compiled
def _line_end(data: Bytes, i: int) -> int:
    """The position of the line feed at or after `i`, or the size of the block."""
    while i < data.size and data[i] != LF:
        i += 1
    return i


@compiled
def scan_csv(
    delimiter: int,
    quote: int,
    comment: int,
    multiline: bool,
    max_record: int,
    slot_of_field: Int32s,
    arrays: records.Arrays,
    data: Bytes,
    begin: int,
    final: bool,
) -> tuple[int, int]:
    """Fill the arrays from record `begin` on, as far as they reach.

    Returns:
        The number of records, and where the first one begins that was not scanned: because the
        arrays are full, or because its end is not in the block and the block is not `final`.
    """
    starts, ends, counts, status, field_starts, field_ends, field_modes = arrays
    n = data.size
    capacity = starts.size
    rows = 0
    i = begin
    while i < n and rows < capacity:
        start = i
        if data[i] == LF:
            i += 1
            continue
        if data[i] == CR and (i + 1 == n or data[i + 1] == LF):
            if i + 1 == n and not final:
                break
            i = min(i + 2, n)
            continue
        if data[i] == comment:
            i = _line_end(data, i)
            if i == n and not final:
                i = start
                break
            i = min(i + 1, n)
            continue

        limit = min(n, start + max_record + 1)
        code = records.GOOD
        count = 0
        first_line_end = -1
        open_quote = False
        ended = False
        while not ended:
            mode = PLAIN
            quoted = i < limit and data[i] == quote
            if quoted:
                i += 1
                field_start = i
                open_quote = True
                while i < limit:
                    c = data[i]
                    if c == quote:
                        if i + 1 < n and data[i + 1] == quote:
                            mode = DOUBLED_QUOTES
                            i += 2
                            continue
                        open_quote = False
                        break
                    if c == LF:
                        if first_line_end < 0:
                            first_line_end = i
                        if not multiline:
                            break
                    i += 1
                if open_quote:
                    break
                field_end = i
                i += 1
                if i < limit and data[i] == CR and (i + 1 == n or data[i + 1] == LF):
                    i += 1
                while i < limit and data[i] != delimiter and data[i] != LF:
                    code = records.BAD_QUOTE
                    i += 1
            else:
                field_start = i
                while i < limit and data[i] != delimiter and data[i] != LF:
                    i += 1
                field_end = i
                if (i >= limit or data[i] == LF) and i > field_start and data[i - 1] == CR:
                    field_end = i - 1
            if count < slot_of_field.size and slot_of_field[count] >= 0:
                slot = slot_of_field[count]
                field_starts[slot, rows] = field_start
                field_ends[slot, rows] = field_end
                field_modes[slot, rows] = mode
            count += 1
            if i >= limit:
                break
            ended = data[i] == LF
            i += 1

        end = i - 1
        if not ended:
            if limit - start > max_record:
                code = records.UNCLOSED_QUOTE if first_line_end >= 0 else records.TOO_LONG
                end = first_line_end if first_line_end >= 0 else _line_end(data, limit)
            elif open_quote and first_line_end >= 0 and (final or not multiline):
                code = records.UNCLOSED_QUOTE
                end = first_line_end
            else:
                end = n
                if open_quote:
                    code = records.UNCLOSED_QUOTE
            if end == n and not final:
                i = start
                break
            i = min(end + 1, n)
        starts[rows] = start
        ends[rows] = end
        counts[rows] = count
        status[rows] = code
        rows += 1
    return rows, i
