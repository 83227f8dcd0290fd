"""Valid files with places changed, and what must hold of every reader of them.

``--long`` takes `LONG` examples a reader in place of `SHORT`; ``--hypothesis-seed`` makes it another draw.
"""

import json
import sys
from copy import deepcopy
from datetime import timedelta

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sglang_specbench.errors import UserError

LONG, SHORT = 600, 25
SLOW = timedelta(
    seconds=20
)  # the stated bound: most examples take some milliseconds, on a machine that is not ours alone
EXAMPLES = LONG if "--long" in sys.argv else SHORT

ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from(
        [0, -1, 2**31, 2**63, 10**30, 1e308, float("inf"), float("nan"), "", "\0", "\ud800", "[/red]", "../..", "$x"]
    ),
    st.text(max_size=8),
    st.floats(),
    st.sampled_from([[], {}, [[]], {"a": {}}, [None], ["a", 1]]),
)
DEEP = st.integers(50, 400).map(lambda depth: json.loads("[" * depth + "]" * depth))


def places(value, path=()):
    """Every place in a JSON value."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from places(item, (*path, key))


@st.composite
def changed(draw, value):
    """``value`` with one to three places replaced, left out, doubled or renamed."""
    value = json.loads(json.dumps(value))
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(list(places(value))))
        if not path:
            return deepcopy(draw(ODD))  # what is drawn is shared between examples
        holder = value
        for key in path[:-1]:
            holder = holder[key]
        how = draw(st.sampled_from(["replace", "replace", "drop", "double", "rename", "deep"]))
        if how == "drop":
            del holder[path[-1]]
        elif how == "double" and isinstance(holder, list):
            holder.append(deepcopy(holder[path[-1]]))
        elif how == "rename" and isinstance(holder, dict):
            holder[draw(st.text(max_size=5))] = holder.pop(path[-1])
        else:
            holder[path[-1]] = deepcopy(draw(DEEP if how == "deep" else ODD))
    return value


@st.composite
def torn(draw, data):
    """``data`` cut, with bytes changed or with a piece put in."""
    data = bytearray(data)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, max(0, len(data) - 1)))
        how = draw(st.sampled_from(["cut", "byte", "insert", "remove"]))
        if how == "cut":
            del data[at:]
        elif how == "byte" and data:
            data[at] = draw(st.integers(0, 255))
        elif how == "insert":
            data[at:at] = draw(st.binary(max_size=16))
        else:
            del data[at : at + draw(st.integers(1, 16))]
    return bytes(data)


def fuzz(strategy, check, examples=EXAMPLES):
    """Run ``check`` over so many examples of ``strategy``."""

    @settings(
        max_examples=examples, deadline=SLOW, database=None, derandomize=EXAMPLES == SHORT,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(strategy)
    def run(example):
        check(example)

    run()


def written(path, check, *allowed):
    """A check that writes the example to ``path`` first; ``allowed`` is what it may raise."""

    def run(example):
        path.write_bytes(example if isinstance(example, bytes) else json.dumps(example).encode(errors="surrogatepass"))
        try:
            check()
        except (UserError, *allowed) as error:
            code = getattr(error, "exit_code", 2) if str(error) else 1
        else:
            code = 0
        assert code != 1  # nor without a word

    return run
