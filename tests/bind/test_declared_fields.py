"""Fields of a PROTOCOL and what a source has: by name, by position, or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from terascope.connectors.registry import parse_interface
from terascope.diagnostic import QueryError, Source
from terascope.pipeline import Bindings, Compiled, compile_set
from terascope.reference.interpreter import evaluate
from tests.agreement import delivered
from tests.connectors.table_reading import SHARED
from tests.reference.connector_sources import ConnectorSources


def compiled(text: str, source: str, **options: str) -> Compiled:
    interface = parse_interface(source, options)
    return compile_set(Source(text), Bindings({interface.name: interface}))


def rows(set_: Compiled) -> list[tuple[object, ...]]:
    sources = ConnectorSources(set_.bindings.interfaces)
    (answer,) = delivered(set_.optimized, evaluate(set_.optimized, sources)).values()
    return sorted(answer.rows)


def mistakes(text: str, source: str, **options: str) -> list[str]:
    with pytest.raises(QueryError) as raised:
        compiled(text, source, **options)
    return [f"{d.code}: {d.message}; {d.help}" for d in raised.value.diagnostics]


def test_a_key_that_the_first_rows_lack_is_null(tmp_path: Path) -> None:
    path = tmp_path / "f.json"
    path.write_text('{"t": 1}\n' * 3000 + '{"t": 2, "user": "ann", "deep": {"a": 1}}\n')
    text = """PROTOCOL P (t UINT increasing, user STRING, deep STRING);
    SELECT t, user, COUNT(*) AS n FROM P GROUP BY t, user"""
    found = compiled(text, f"f=json:{path}")
    assert rows(found) == [(1, None, 3000), (2, "ann", 1)]
    assert [w.code for w in found.warnings] == ["missing-column", "missing-column"]
    path.write_text('{"t": 2, "user": "ann", "deep": {"a": 1}}\n')
    assert compiled(text, f"f=json:{path}").warnings == ()


def test_a_key_that_no_row_has_is_null_with_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "f.json"
    path.write_text('{"t": 1}\n{"t": 2}\n')
    found = compiled(
        "PROTOCOL P (t UINT increasing, usr STRING); SELECT t, usr FROM P", f"f=json:{path}"
    )
    assert rows(found) == [(1, None), (2, None)]
    (warning,) = found.warnings
    assert "'usr'" in warning.message


@pytest.mark.parametrize("kind", ["csv", "pcap"])
def test_a_field_that_no_query_reads_need_not_exist(tmp_path: Path, kind: str) -> None:
    if kind == "csv":
        (tmp_path / "f.csv").write_text("time,len\n1,5\n2,6\n")
        source = f"f=csv:{tmp_path / 'f.csv'}"
    else:
        from tests.connectors.packet_bytes import Frame, ethernet, ipv4, pcap, tcp

        frame = ethernet(ipv4(tcp(payload=b"x")))
        (tmp_path / "f.pcap").write_bytes(pcap([Frame(frame, 1, 0), Frame(frame, 2, 0)]))
        source = f"f=pcap:{tmp_path / 'f.pcap'}"
    parent = "(PKT) " if kind == "pcap" else ""
    declared = f"PROTOCOL P {parent}(time UINT increasing clock(s), colour STRING, len UINT);"
    assert len(rows(compiled(f"{declared} SELECT time, len FROM f.P", source))) == 2
    assert len(rows(compiled(f"{declared} SELECT time, len FROM P", source))) == 2
    (told,) = mistakes(f"{declared} SELECT time, colour FROM f.P", source)
    assert told.startswith("missing-column: ")
    assert "'colour' that P names" in told


def test_a_source_with_none_of_the_fields_is_a_mistake(tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text("1;5\n2;6\n")
    (told,) = mistakes("PROTOCOL P (a UINT, b UINT); SELECT 1 AS x FROM f.P", f"f=csv:{tmp_path}")
    assert told.startswith("missing-column: ")
    assert "--source-option f.names=a,b" in told
    assert "--source-option f.delimiter=" in told


OLD_FORM = """
PROTOCOL OLD {
    uint ts get_csv_uint_pos2 (increasing);
    uint amount get_csv_uint_pos4;
    string who get_csv_string_pos1;
    string absent get_csv_string_pos9;
};
"""


def test_accessors_bind_by_position(tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text("ann,10,x,5\nbob,11,y,6\n")
    query = OLD_FORM + "SELECT ts, who, amount FROM f.OLD"
    source = f"f=csv:{tmp_path / 'f.csv'}"
    assert rows(compiled(query, source, header="false")) == [(10, "ann", 5), (11, "bob", 6)]
    (tmp_path / "f.csv").write_text("amount,who,ts,other\nann,10,x,5\nbob,11,y,6\n")
    assert rows(compiled(query, source)) == [(10, "ann", 5), (11, "bob", 6)]
    (told,) = mistakes(OLD_FORM + "SELECT absent FROM f.OLD", source)
    assert told.startswith(f"missing-column: '{tmp_path / 'f.csv'}' has no column 9 that OLD names")


def test_accessors_of_other_sources_bind_by_name(tmp_path: Path) -> None:
    (tmp_path / "f.json").write_text('{"who": "ann", "ts": 10, "amount": 5}\n')
    query = OLD_FORM + "SELECT ts, who, amount FROM f.OLD"
    assert rows(compiled(query, f"f=json:{tmp_path / 'f.json'}")) == [(10, "ann", 5)]


def test_keys_of_real_events_that_many_rows_lack() -> None:
    path = SHARED / "data/events/wikiticker-2015-09-12-sampled.json.gz"
    if not path.exists():
        pytest.skip("the shared event data is not there")
    found = compiled(
        "PROTOCOL W (time ULLONG increasing clock(ms), metroCode INT, cityName STRING);"
        " SELECT cityName IS NULL AS none, COUNT(*) AS n FROM W GROUP BY time/86400000, cityName"
        " IS NULL",
        f"w=json:{path}",
    )
    assert sum(int(str(n)) for _, n in rows(found)) == 39244
