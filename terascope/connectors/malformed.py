"""The reasons why input is malformed: a fixed set, and the files they are about.

In: reasons that connectors count. Out: counts, bytes and file names of a report. No text of a file
becomes part of a reason, so that a writer of a source cannot make counters, metric labels or
checkpoints grow: numbers that vary (how many bytes were skipped) are counters beside the reason,
names of files are a list of limited length.

Reasons of a column are `column 'x': ...`: one for each fault of each column that a query set reads.
"""

from __future__ import annotations

import enum
from typing import Final

MOST_NAMED: Final = 20
"""Files that a report names; more are only counted."""


class FileFault(enum.StrEnum):
    """Why a file, or the rest of it, could not be used."""

    EMPTY = "empty file"
    NOT_A_CAPTURE = "not a capture file: neither pcap nor pcapng, plain or gzip"
    CUT_HEADER = "truncated file header"
    DAMAGED_GZIP = "damaged gzip stream"
    NOT_PARQUET = "not a Parquet file, or cut short"
    BAD_HEADER = "no usable CSV header"
    UNREADABLE = "file cannot be read"
    REPLACED = "file replaced, cut short or removed before it was read"


class RecordFault(enum.StrEnum):
    """Why a record was not used, where no header of a packet and no value of a column is wrong."""

    CUT_RECORD = "truncated record"
    DAMAGED_RECORD = "damaged record"
    BAD_TIME = "timestamp out of range"
    BAD_PACKET_BLOCK = "bad packet block"
    DAMAGED_ROWS = "row of a damaged Parquet row group"
    WRONG_FIELDS = "wrong number of fields"
    UNCLOSED_QUOTE = "quote not closed"
    BAD_QUOTE = "text after a closing quote"
    TOO_LONG = "row too long"
    INVALID_JSON = "invalid JSON"
    NOT_OBJECT = "not a JSON object"
    INVALID_UTF8 = "invalid UTF-8"
