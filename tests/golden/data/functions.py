"""Functions of users, for the golden cases."""

from __future__ import annotations

from itertools import pairwise

from terascope.functions.user import aggregate, scalar


@scalar(takes=("INT", "INT"), returns="INT")
def clamp(value: int, most: int) -> int:
    return min(value, most)


@scalar(takes=("STRING",), returns="STRING")
def initials(text: str) -> str:
    return "".join(word[0] for word in text.split())


@aggregate(takes=("INT",), returns="INT")
class sum_of_squares:
    def zero(self) -> int:
        return 0

    def reduce(self, state: int, x: int) -> int:
        return state + x * x

    def merge(self, left: int, right: int) -> int:
        return left + right

    def finish(self, state: int) -> int:
        return state


@aggregate(takes=("INT",), returns="INT", ordered=True)
class longest_rise:
    """How often in a row a value was above the one before; the order of tuples matters."""

    def zero(self) -> list[int]:
        return []

    def reduce(self, state: list[int], x: int) -> list[int]:
        return [*state, x]

    def merge(self, left: list[int], right: list[int]) -> list[int]:
        return [*left, *right]

    def finish(self, state: list[int]) -> int:
        best = now = 0
        for before, after in pairwise(state):
            now = now + 1 if after > before else 0
            best = max(best, now)
        return best
