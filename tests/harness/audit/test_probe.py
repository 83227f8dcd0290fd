"""What a server answers to an audit is of its shape, or the audit fails by the server and not by an exception."""

import asyncio
import json

import pytest

from harness.audit.probe import Probe
from harness.schema.failure import Failure
from tests.faults.test_server import ANSWER

PLACES = [[[-0.1, 5, "a"], [-2.5, 7, "b"]], [[-0.2, 6, None], [-2.0, 8, None]]]


def told(places=PLACES, **changes):
    meta = {**ANSWER["meta_info"], "output_top_logprobs": places}
    return [{**ANSWER, "meta_info": meta, **changes}]


def asked(answers):
    class Told(Probe):
        async def _call(self, *_):
            return 200, json.dumps(answers)

    probe = Told("http://nowhere", 5.0, lambda _: None)
    return asyncio.run(probe.greedy([1, 2], 2)), asyncio.run(probe.conditionals([(1, 2)], 2))


def test_a_good_answer_is_read():
    (ids, raws), conditionals = asked(told())
    assert ids == (1, 2)
    assert [raw.tokens.tolist() for raw in raws] == [[5, 7], [6, 8]]
    assert len(conditionals) == 1


@pytest.mark.parametrize(
    "answers",
    [
        None, {}, [], [None], [[]], [{}], told()[0], told() * 2, told(None), told([]), told([[]]), told([None]),
        told("x"), told([[[-0.1]]]), told([[["a", 5, ""]]]), told([[[-0.1, "5", ""]]]), told([[[-0.1, -5, ""]]]),
        told([[[-0.1, 2**40, ""]]]), told([[[True, True, ""]]]), told(output_ids=None), told(meta_info=[]),
        told(meta_info=None),
    ],
)  # fmt: skip
def test_any_other_is_a_failure(answers):
    with pytest.raises(Failure) as caught:
        asked(answers)
    assert caught.value.outcome == "invalid"
