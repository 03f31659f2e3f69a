"""Planning keeps the garbage collector away, and only while it lasts."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from threading import Event, Thread

import pytest

from terascope.uncollected import Uncollected


@pytest.fixture(autouse=True)
def collecting() -> Iterator[None]:
    was_enabled = gc.isenabled()
    gc.enable()
    yield
    (gc.enable if was_enabled else gc.disable)()


def test_no_collection_while_it_runs() -> None:
    assert not Uncollected()(gc.isenabled)()
    assert gc.isenabled()


def test_collections_go_on_after_a_mistake() -> None:
    def fails() -> None:
        assert not gc.isenabled()
        raise KeyError

    with pytest.raises(KeyError):
        Uncollected()(fails)()
    assert gc.isenabled()


def test_one_who_switched_collections_off_keeps_them_off() -> None:
    gc.disable()
    Uncollected()(gc.isenabled)()
    assert not gc.isenabled()


def test_the_last_of_several_threads_lets_collections_go_on() -> None:
    uncollected = Uncollected()
    begun, may_end = Event(), Event()

    def long() -> None:
        begun.set()
        assert may_end.wait(60)

    thread = Thread(target=uncollected(long))
    thread.start()
    assert begun.wait(60)
    assert not uncollected(gc.isenabled)()
    assert not gc.isenabled()
    may_end.set()
    thread.join()
    assert gc.isenabled()
