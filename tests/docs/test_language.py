"""docs/language.md: every example runs, and nothing of the language is left out."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from terascope.bind.script import HONOURED, NOT_YET
from terascope.connectors.packets.fields import ALIASES, ALL_FIELDS, PROTOCOLS
from terascope.functions.casts import cast_names
from terascope.functions.registry import Functions, deferred_names
from terascope.syntax.keywords import ALL, FIELD_PROPERTIES, LITERAL_PREFIXES, TWO_WORDS
from terascope.syntax.lexical import UNITS
from terascope.types import type_names
from tests.docs.answers import bindings, compiled, results, shown_row, shown_value
from tests.docs.blocks import DOCS, EXAMPLES, ROOT, Block, blocks, code_spans, page, table_rows
from tests.docs.example_files import CAPTURES
from tests.docs.outcome import blessed, kind_of, mistakes_of, outcome

TEXT = page("language.md")
BLOCKS = blocks(TEXT)
EXAMPLES_OF_GSQL = [b for b in BLOCKS if kind_of(b)]
FUNCTIONS = Functions.builtin()
SPANS = {span for line in TEXT.split("\n") for span in code_spans(line)}
DIGITS = "PROTOCOL D (ts UINT increasing clock(s), x INT, w STRING, b BOOL);"


@pytest.fixture(autouse=True)
def _in_the_folder_of_examples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(EXAMPLES)


@pytest.mark.parametrize("name", CAPTURES)
def test_the_captures_are_what_they_are_made_from(name: str) -> None:
    assert (EXAMPLES / name).read_bytes() == CAPTURES[name]


@pytest.mark.parametrize("block", EXAMPLES_OF_GSQL, ids=lambda b: b.place)
def test_example(block: Block, request: pytest.FixtureRequest) -> None:
    found = outcome(block)
    if block.answer is not None and not request.config.getoption("--bless"):
        assert found == block.answer.text, "if it should be so: pytest tests/docs --bless"


def test_answers_can_be_written_anew(request: pytest.FixtureRequest) -> None:
    anew = blessed(TEXT)
    if request.config.getoption("--bless"):
        (DOCS / "language.md").write_text(anew, encoding="utf-8")
    else:
        assert anew == TEXT


def test_every_block_of_gsql_is_tested() -> None:
    assert len(EXAMPLES_OF_GSQL) > 50
    untested = [b.line for b in BLOCKS if b.kind == "gsql" and not kind_of(b)]
    assert not untested


def test_all_spellings_of_a_join_mean_the_same() -> None:
    block = next(b for b in BLOCKS if "QUERY inner_1:" in b.text)
    answers = results(compiled(block.text, bindings()))
    for name, answer in answers.items():
        assert answer == answers[name.partition("_")[0] + "_1"], name
    assert answers["inner_1"].rows != answers["left_1"].rows


# ---- tables of functions -------------------------------------------------------------------------

SCALARS = table_rows(TEXT, "### Scalar functions")[1:]
AGGREGATES = table_rows(TEXT, "### Aggregates")[1:]
OF_STATES = table_rows(TEXT, "#### Functions of states")[1:]


def names_in(cell: str) -> list[str]:
    """`prefix(ip, n4)` and plain `prefix` both name prefix."""
    return [re.split(r"[\[(]", span)[0].lower() for span in code_spans(cell)]


def test_every_function_is_in_a_table() -> None:
    rows = (*SCALARS, *AGGREGATES, *OF_STATES)
    told = [n for row in rows for cell in row[:2] for n in names_in(cell)]
    assert sorted(told) == sorted({*FUNCTIONS.names(), *cast_names})
    scalars = {n for row in SCALARS for cell in row[:2] for n in names_in(cell)}
    assert not scalars & {*FUNCTIONS.aggregates}


def test_synonyms_stand_beside_what_they_mean() -> None:
    for name, *_ in SCALARS:
        assert len(code_spans(name)) == 1, name
    for row in (*SCALARS, *AGGREGATES, *OF_STATES):
        (name,), others = names_in(row[0]), names_in(row[1])
        known = FUNCTIONS.scalar(name) or FUNCTIONS.aggregate(name)
        if FUNCTIONS.extractor(name) is not None:
            assert not others, "an extractor has one name"
            continue
        if known is None:
            assert name in cast_names
            continue
        for other in others:
            assert (FUNCTIONS.scalar(other) or FUNCTIONS.aggregate(other)) is known, other


@pytest.mark.parametrize("row", SCALARS, ids=lambda r: names_in(r[0])[0])
def test_scalar_example(row: list[str]) -> None:
    call, value = code_spans(row[-1])
    assert names_in(row[0])[0] == re.split(r"[\[(]", call)[0].lower()
    query_set = compiled(f"SELECT {call} AS v FROM eth0.PKT", bindings())
    answer = results(query_set)["query1"]
    assert shown_row(answer.rows[0], answer.fields)[0] == value


@pytest.mark.parametrize("row", [*AGGREGATES, *OF_STATES], ids=lambda r: names_in(r[0])[0])
def test_aggregate_example(row: list[str]) -> None:
    call, value = code_spans(row[-1])
    assert f"{names_in(row[0])[0]}(" in call.lower()
    query_set = compiled(f"{DIGITS} SELECT {call} AS v FROM digits.D GROUP BY ts/60", bindings())
    ((found,),) = results(query_set)["query1"].rows
    assert shown_value(found) == value


def test_the_digits_are_shown_as_they_are() -> None:
    shown = table_rows(TEXT, "#### The five rows the aggregates are shown on")[1:]
    lines = (EXAMPLES / "digits.csv").read_text().strip().split("\n")[1:]
    assert [",".join(row) for row in shown] == lines


# ---- packet fields -------------------------------------------------------------------------------


def test_every_packet_field_is_told() -> None:
    rows = table_rows(TEXT, "### Packet fields")[1:]
    told = {code_spans(name)[0]: (type_, where) for name, type_, where, *_ in rows}
    assert list(told) == [f.name for f in ALL_FIELDS]
    for field in ALL_FIELDS:
        type_, where = told[field.name]
        assert type_ == field.type.value
        offered = [p for p, fields in PROTOCOLS.items() if field in fields]
        if where == "all":
            assert offered == list(PROTOCOLS)
        else:
            general = {"PKT", "IP", "IPV4", "IPV6"}
            wanted = where.split(", ")
            assert set(offered) == ({*wanted} | general), field.name
    assert set(ALIASES) <= SPANS


def test_every_key_of_define_is_told() -> None:
    assert {*HONOURED, *NOT_YET} <= SPANS


def test_every_protocol_is_told() -> None:
    rows = table_rows(TEXT, "### Packet protocols")[1:]
    assert [code_spans(row[0])[0] for row in rows] == list(PROTOCOLS)


# ---- diagnostics ---------------------------------------------------------------------------------

CODES = table_rows(TEXT, "## Every diagnostic")[1:]
CODE = re.compile(r'"([a-z]+(?:-[a-z]+)+)"|(?:error|warning|mistake|Diagnostic)\(\s*"([a-z]+)"')


def codes_of_the_sources() -> set[str]:
    """Everything in the front end that is written as a diagnostic's code."""
    found: set[str] = set()
    for folder in ("bind", "syntax"):
        for path in (ROOT / "terascope" / folder).glob("*.py"):
            for match in CODE.finditer(path.read_text(encoding="utf-8")):
                found.add(match[1] or match[2])
    return found


def test_every_code_is_told_and_no_other() -> None:
    told = [code_spans(row[0])[0] for row in CODES]
    assert sorted(told) == sorted(codes_of_the_sources())


@pytest.mark.parametrize("row", CODES, ids=lambda r: code_spans(r[0])[0])
def test_diagnostic_example(row: list[str]) -> None:
    code = code_spans(row[0])[0]
    query, *given = code_spans(row[-1])
    name, _, value = given[0].removeprefix("--param ").partition("=") if given else ("", "", "")
    bound = replace(bindings(), parameters={name: value} if given else {})
    if code == "forbidden-file":
        bound = replace(bound, query_files=())
    if code == "too-deep":
        query = f"SELECT {'-(' * 260}len{')' * 260} FROM TCP"
    if told := mistakes_of(query, bound):
        assert set(told.codes) == {code}, str(told)
    else:
        assert {w.code for w in compiled(query, bound).warnings} == {code}


# ---- words ---------------------------------------------------------------------------------------


def mentioned(word: str) -> bool:
    return re.search(rf"(?<![\w]){re.escape(word)}(?![\w])", TEXT, re.IGNORECASE) is not None


def test_every_word_of_the_language_is_told() -> None:
    blanks = {" ".join(pair) for pair in TWO_WORDS}
    words = {*ALL, *FIELD_PROPERTIES, *LITERAL_PREFIXES, *type_names, *blanks}
    words |= {*UNITS, *deferred_names}
    assert sorted(word for word in words if not mentioned(word)) == []


def test_what_is_not_executable_is_shown_to_be_refused() -> None:
    _, _, section = TEXT.partition("\n## Parsed, but not run yet\n")
    section = section.partition("\n## ")[0]
    inside = [b for b in blocks(section) if kind_of(b)]
    assert len(inside) >= 8
    assert all(b.option("error") == "not-executable" for b in inside)
    assert {n for n in deferred_names if f"`{n}`" not in section} == set()
