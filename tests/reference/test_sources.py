from __future__ import annotations

from pathlib import Path

from terascope.connectors.packets.fields import LAYER_BITS
from terascope.connectors.registry import parse_interface
from terascope.plan.rel import IFACE, POS, TS, Scan, SourceField
from terascope.types import Type, parse_ip
from tests.oracle.build import records, scan
from tests.reference.connector_sources import ConnectorSources
from tests.reference.memory_sources import MemorySources

COLUMNS = (
    SourceField("t", Type.INT, column="ts"),
    SourceField("ip", Type.IP),
    SourceField(TS, Type.INT, column="ts"),
    SourceField(IFACE, Type.STRING, column="interface"),
    SourceField(POS, Type.LLONG),
)


def csv_sources(folder: Path, **texts: str) -> ConnectorSources:
    interfaces = {}
    for name, text in texts.items():
        (folder / f"{name}.csv").write_text(text, encoding="utf-8")
        interfaces[name] = parse_interface(f"{name}=csv:{folder / name}.csv")
    return ConnectorSources(interfaces)


def test_interfaces_are_read_in_turn_with_their_place(tmp_path: Path) -> None:
    sources = csv_sources(
        tmp_path, a="ts,ip,n\n5,10.0.0.1,1\n7,::1,2\n", b="n,ts,ip\n3,6,10.0.0.2\n"
    )
    rows = sources.rows(Scan(("a", "b"), "LOG", COLUMNS))
    assert [row[:4] for row in rows] == [
        (5, parse_ip("10.0.0.1"), 5, "a"),
        (7, parse_ip("::1"), 7, "a"),
        (6, parse_ip("10.0.0.2"), 6, "b"),
    ]
    assert rows[0][4] < rows[1][4]


def test_the_horizon_is_that_of_all_interfaces(tmp_path: Path) -> None:
    sources = csv_sources(tmp_path, a="ts,ip\n5,10.0.0.1\n", b="ts,ip\n9,10.0.0.2\n4,::1\n")
    both = sources.horizon(Scan(("a", "b"), "LOG", COLUMNS))
    assert (both["t"], both[TS]) == (9, 9)
    assert sources.horizon(Scan(("a",), "LOG", COLUMNS))["t"] == 5


def test_a_row_is_malformed_by_any_checked_column(tmp_path: Path) -> None:
    sources = csv_sources(tmp_path, a="ts,ip,n\n5,10.0.0.1,x\n6,10.0.0.2,1\n")
    checked = (SourceField("n", Type.INT),)
    assert len(sources.rows(Scan(("a",), "LOG", COLUMNS))) == 2
    assert [row[0] for row in sources.rows(Scan(("a",), "LOG", COLUMNS, checked=checked))] == [6]
    assert sum(sources.reports["a"].malformed.values()) == 1


def test_one_reading_does_not_take_the_horizon_of_another(tmp_path: Path) -> None:
    sources = csv_sources(tmp_path, a="ts,n\n5,70\n")
    by_ts = Scan(("a",), "LOG", (SourceField("ts", Type.INT),))
    by_n = Scan(("a",), "LOG", (SourceField("n", Type.INT),))
    assert sources.rows(by_ts) == [(5,)]
    assert sources.rows(by_n) == [(70,)]
    assert sources.horizon(by_ts) == {"ts": 5}
    assert sources.horizon(by_n) == {"n": 70}


def test_tables_in_memory_have_places_and_layers() -> None:
    tcp = LAYER_BITS["TCP"]
    tables = {"t": records("ts x #layers", (5, 1, tcp | 1), (6, 2, 1), (7, 3, tcp))}
    source = scan("t", x=Type.INT, y=Type.INT, layer=tcp)
    assert MemorySources(tables).rows(source) == [(1, None, 5, "t", 0), (3, None, 7, "t", 2)]
    assert MemorySources(tables).horizon(source) == {"x": 3, TS: 7}
