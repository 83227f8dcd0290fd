"""Worked arithmetic in a fixed style: the mini corpus's lowest-entropy domain.

Knows: five problem templates, each answered step by step with the numbers repeated, so that a model of a few
million parameters can learn to be right. Held-out problems are those whose first two numbers, as the question
shows them, fall in one residue class (`is_held_out`): no training problem has the same pair in either order.
Not here: chat rendering, tokenization, the other domains.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from random import Random

from drafters.mini.example import Example

NAMES = ("Ada", "Ben", "Cleo", "Dan", "Eva", "Finn", "Gia", "Hugo", "Iris", "Jack", "Kira", "Leo")
THINGS = ("apples", "books", "coins", "cards", "eggs", "pens", "shells", "stamps")
PLACES = ("Ones", "Tens", "Hundreds")
HELD_OUT_MODULUS = 20


def is_held_out(a: int, b: int) -> bool:
    """Whether a problem with first operands a and b belongs to the held-out split (about one in twenty)."""
    return (a * b + a + b) % HELD_OUT_MODULUS == 7


def digits(number: int) -> list[int]:
    """Three decimal digits, ones first."""
    return [number // 10**place % 10 for place in range(3)]


def addition(a: int, b: int, rng: Random) -> tuple[str, str]:
    """Column addition of two numbers below 500, with every carry written out."""
    lines, carry = [f"We add {a} and {b} digit by digit."], 0
    for place, x, y in zip(PLACES, digits(a), digits(b), strict=True):
        total = x + y + carry
        lines.append(f"{place}: {x} + {y} + {carry} = {total}, write {total % 10}, carry {total // 10}.")
        carry = total // 10
    question = rng.choice((f"What is {a} + {b}?", f"Add {a} and {b}.", f"Find the sum of {a} and {b}."))
    return question, "\n".join([*lines, f"So {a} + {b} = {a + b}.", f"Answer: {a + b}"])


def subtraction(a: int, b: int, rng: Random) -> tuple[str, str]:
    """Column subtraction, the larger number first, with every borrow written out."""
    a, b = max(a, b), min(a, b)
    lines, borrow = [f"We subtract {b} from {a} digit by digit."], 0
    for place, x, y in zip(PLACES, digits(a), digits(b), strict=True):
        difference = x - y - borrow
        lines.append(
            f"{place}: {x} - {y} - {borrow} = {difference}, write {difference % 10}, borrow {int(difference < 0)}."
        )
        borrow = int(difference < 0)
    question = rng.choice((f"What is {a} - {b}?", f"Subtract {b} from {a}.", f"Take {b} away from {a}."))
    return question, "\n".join([*lines, f"So {a} - {b} = {a - b}.", f"Answer: {a - b}"])


def multiplication(a: int, b: int, rng: Random) -> tuple[str, str]:
    """A two-digit number times a one-digit number, by tens and ones."""
    a, b = 10 + a % 90, 2 + b % 8
    tens, ones = a - a % 10, a % 10
    question = rng.choice((f"What is {a} * {b}?", f"Multiply {a} by {b}.", f"Find {a} times {b}."))
    answer = (
        f"We multiply {a} by {b} in parts.\n{a} = {tens} + {ones}.\nTens: {tens} * {b} = {tens * b}.\n"
        f"Ones: {ones} * {b} = {ones * b}.\nSum: {tens * b} + {ones * b} = {a * b}.\n"
        f"So {a} * {b} = {a * b}.\nAnswer: {a * b}"
    )
    return question, answer


def story(a: int, b: int, rng: Random) -> tuple[str, str]:
    """A word problem: some things, bags of more, some given away."""
    start, bags, size = 10 + a % 40, 2 + b % 5, 2 + (a + b) % 8
    name, things = rng.choice(NAMES), rng.choice(THINGS)
    bought = bags * size
    total = start + bought
    gone = rng.randint(1, 9)
    question = (
        f"{name} has {start} {things}. {name} buys {bags} bags with {size} {things} in each bag and then gives "
        f"away {gone} {things}. How many {things} does {name} have now?"
    )
    answer = (
        f"{name} starts with {start} {things}.\nThe {bags} bags hold {bags} * {size} = {bought} {things}.\n"
        f"{name} then has {start} + {bought} = {total} {things}.\n"
        f"After giving away {gone} {things}, {name} has {total} - {gone} = {total - gone} {things}.\n"
        f"Answer: {total - gone}"
    )
    return question, answer


def counting(a: int, b: int, rng: Random) -> tuple[str, str]:
    """Eight terms of an arithmetic progression, one step a line."""
    start, step, terms = a % 100, 2 + b % 8, rng.randint(6, 9)
    lines = [f"We start at {start} and add {step} each time."]
    value = start
    for _ in range(terms - 1):
        lines.append(f"{value} + {step} = {value + step}")
        value += step
    series = ", ".join(str(start + step * i) for i in range(terms))
    question = f"Count from {start} in steps of {step}. Give {terms} numbers."
    return question, "\n".join([*lines, f"The numbers are {series}.", f"Answer: {value}"])


TEMPLATES: tuple[Callable[[int, int, Random], tuple[str, str]], ...] = (
    addition,
    subtraction,
    multiplication,
    story,
    counting,
)


def examples(seed: int) -> Iterator[Example]:
    """An endless stream of problems, the same for the same seed; its split is part of each example."""
    rng = Random(seed)
    number = 0
    while True:
        a, b = rng.randint(11, 499), rng.randint(11, 499)
        user, assistant = TEMPLATES[number % len(TEMPLATES)](a, b, rng)
        first, second = map(int, re.findall(r"\d+", user)[:2])
        held_out = is_held_out(first, second)
        yield Example(f"arithmetic-{number}", "arithmetic", user, assistant, held_out)
        number += 1
