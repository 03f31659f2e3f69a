from __future__ import annotations

import pickle

import pytest

from terascope.functions.base import FunctionMistake, Scalar
from terascope.functions.registry import Functions, deferred_names
from terascope.functions.signatures import NUMBER, signature
from terascope.types import Type
from tests.functions.travel import dumps

FUNCTIONS = Functions.builtin()


def twice(name: str) -> Scalar:
    return Scalar(name, signature(name, NUMBER, returns=Type.FLOAT), lambda x: 2.0 * x)


def test_names_have_no_case() -> None:
    assert FUNCTIONS.aggregate("Or_Aggr") is FUNCTIONS.aggregate("OR_AGGR")
    assert FUNCTIONS.scalar("UMAX") is FUNCTIONS.scalar("umax")
    assert FUNCTIONS.scalar("count") is None
    assert FUNCTIONS.aggregate("sqrt") is None
    assert FUNCTIONS.scalar("=") is not None


def test_no_name_is_both_scalar_and_aggregate_or_deferred() -> None:
    assert not FUNCTIONS.scalars.keys() & FUNCTIONS.aggregates.keys()
    assert not deferred_names.keys() & {*FUNCTIONS.scalars, *FUNCTIONS.aggregates}


def test_functions_of_the_language_are_there() -> None:
    aggregates = """
        count sum min max avg first last var variance var_samp var_pop stddev
        stddev_samp stddev_pop median percentile quantile_of median_of count_distinct
        or_aggr and_aggr xor_aggr count_dups count_dup sum_of_dups count_diff moving_sum
        moving_sum_exp posavg cat_aggr running_sum running_sum_max running_array_aggr time_avg"""
    scalars = """str_match_start str_exists_substr str_compare str_match_offset byte_match_offset
        str_regex_match str_partial_regex_match str_extract_regex str_truncate str_suffix str_length
        upper lower substr trim replace concat get_list_entry sum_uint_in_list to_hex_string
        string_hash strtoi strtoip prefix in_subnet getlpmid ip_version abs floor ceil round sqrt
        pow exp log ln log2 log10 least greatest umin umax sign coalesce if if_else_i nullif eq geq
        ge leq le endian_swap_ui non_temporal int_to_string_map"""
    assert [n for n in aggregates.split() if FUNCTIONS.aggregate(n) is None] == []
    assert [n for n in scalars.split() if FUNCTIONS.scalar(n) is None] == []


def test_casts_written_as_functions() -> None:
    assert FUNCTIONS.cast("UINT") is Type.UINT
    assert FUNCTIONS.cast("prefix") is None


def test_deferred_names_say_what_to_use() -> None:
    assert FUNCTIONS.deferred("ssample")
    assert FUNCTIONS.deferred("count") is None
    assert FUNCTIONS.extended([twice("local_count")]).deferred("local_count") is None


def test_extended() -> None:
    more = FUNCTIONS.extended([twice("Twice")])
    assert more.scalar("twice") is not None
    assert FUNCTIONS.scalar("twice") is None


@pytest.mark.parametrize("name", ["sqrt", "SUM", "Count_Dup", "uint"])
def test_taken_names_are_refused(name: str) -> None:
    message = f"there is a function {name.lower()} already; give yours another name"
    with pytest.raises(FunctionMistake, match=message):
        FUNCTIONS.extended([twice(name)])
    with pytest.raises(FunctionMistake):
        FUNCTIONS.extended([twice("mine"), twice("MINE")])


def test_suggestions() -> None:
    assert FUNCTIONS.suggest("precentile")[0] == "percentile"
    assert FUNCTIONS.suggest("STR_MATCH_STRAT")[0] == "str_match_start"
    assert FUNCTIONS.suggest("xyzzy") == ()


def test_travels() -> None:
    travelled = pickle.loads(dumps(FUNCTIONS))
    assert travelled.names() == FUNCTIONS.names()
    assert travelled.scalar("upper")("a") == "A"
