"""Every arm that runs on a CPU, in a real server: it attests itself, equals AR at temperature 0, samples at 1.

One server per row of `SERVERS`; the tests of a row share it. Greedy equality is exact (float32, one thread): tau is not
looked at, because the checkpoints are random.
"""

import asyncio
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.serve.client import Client, Sampling
from harness.serve.responses import Answer
from sglang_specbench.arms import ARMS, Proposal
from sglang_specbench.attestation import KEY, mismatches
from sglang_specbench.digest import weights_digest
from sglang_specbench.launch import STAND_IN, Launch
from sglang_specbench.refused_log import check_log
from tests.cpu_server.servers import Nursery, Server, serve, start_ordinarily

pytestmark = [pytest.mark.sglang, pytest.mark.slow]
PROMPTS = [list(range(40, 46)), [100, 200, 300, 400, 51, 52, 53], [7, 8, 9], list(range(60, 100))]
# domino-full is left out: its pool is the vocabulary, as domino's is here (512 tokens)
SERVERS: list[tuple[str, Proposal]] = [
    ("dflash", "argmax"),
    ("dflash2", "sampled"),
    ("dflash2-argmax", "argmax"),
    ("domino", "argmax"),
    ("dspark", "sampled"),
    ("dspark-argmax", "argmax"),
    ("lilicorr", "sampled"),
    ("lilicorr-conv", "argmax"),
    ("lilicorr-exact", "argmax"),
]
Answers = list[list[int]]


@pytest.fixture(scope="module")
def greedy(launch_of: Callable[..., Launch], nursery: Nursery, tmp_path_factory: pytest.TempPathFactory) -> Answers:
    """What plain decoding answers at temperature 0."""
    with serve(launch_of("ar", "none"), tmp_path_factory.mktemp("ar") / "log", nursery) as server:
        check_server(server, "ar", "none")
        answers = ids(server.generate(PROMPTS, 0))
        assert ids([server.generate([p], 0)[0] for p in PROMPTS]) == answers
        assert ids(server.generate(PROMPTS, 1)) != answers
        assert eager_steps(server)["target"] > 0  # a CPU has no graphs: the count counts
    return answers


@pytest.fixture(scope="module", params=SERVERS, ids=lambda row: f"{row[0]}-{row[1]}")
def arm_server(
    request: pytest.FixtureRequest,
    launch_of: Callable[..., Launch],
    nursery: Nursery,
    greedy: Answers,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Server]:
    """``greedy`` first: one server at a time."""
    arm, proposal = request.param
    with serve(launch_of(arm, proposal), tmp_path_factory.mktemp(arm) / "log", nursery) as server:
        yield server


@pytest.mark.parametrize(("arm", "window"), [("dflash2", 8), ("dspark", 8), ("domino", 5)])
def test_a_drafter_is_served_at_its_own_width(
    arm: str, window: int, launch_of: Callable[..., Launch], greedy: Answers, nursery: Nursery, tmp_path: Path
) -> None:
    from tests.cpu_server.checkpoints import of_width  # imports torch

    launch = launch_of(arm, ARMS[arm].sampling)
    folder = of_width(Path(str(launch.draft)), tmp_path / "narrow", window)
    with serve(replace(launch, draft=str(folder), window=window), tmp_path / "log", nursery) as server:
        check_server(server, arm, ARMS[arm].sampling)
        answers = server.generate(PROMPTS, 0)
        check_counts(answers, window)
        assert ids(answers) == greedy


def test_dspark_is_served_in_bfloat16(launch_of: Callable[..., Launch], nursery: Nursery, tmp_path: Path) -> None:
    """Its fused write of the context is a Triton kernel that only bfloat16 takes."""
    launch = replace(launch_of("dspark", "sampled"), dtype="bfloat16")
    with serve(launch, tmp_path / "log", nursery) as server:
        check_server(server, "dspark", "sampled")
        check_counts(server.generate(PROMPTS, 1))


def eager_steps(server: Server) -> dict[str, int]:
    counts: dict[str, int] = server.get("/server_info")["internal_states"][0][KEY]["eager_steps"]
    return counts


def ids(answers: list[dict[str, Any]]) -> Answers:
    return [answer["output_ids"] for answer in answers]


def check_server(server: Server, arm: str, proposal: Proposal) -> None:
    info, launch = server.get("/server_info"), server.launch
    wanted = {
        "seed": launch.seed,
        "device": launch.device,
        "dtype": launch.dtype,
        "capacity": launch.concurrency,
        "window": launch.window,
        "target_digest": weights_digest(Path(launch.target)),
        "draft_digest": weights_digest(Path(launch.draft)) if launch.draft else "",
    }
    assert mismatches(info[KEY], ARMS[arm], proposal, **wanted) == []
    assert info[KEY]["threads"] == 1
    state = info["internal_states"][0][KEY]
    assert set(state.pop("eager_steps")) == ({"target", "draft"} if ARMS[arm].head else {"target"})
    assert state == {"downgrades": [], "verification": "exact", "threads": 1}
    assert check_log(server.log, ARMS[arm], proposal, "cpu") == []


def check_counts(answers: list[dict[str, Any]], window: int = 16) -> None:
    """The identities of docs/acceptance.md, on every row."""
    for answer in answers:
        meta = answer["meta_info"]
        histogram, blocks = meta["spec_correct_drafts_histogram"], meta["spec_verify_ct"]
        assert sum(histogram) == blocks
        assert sum(i * n for i, n in enumerate(histogram)) == meta["spec_num_correct_drafts"]
        assert 0 <= 1 + meta["spec_num_correct_drafts"] + blocks - meta["completion_tokens"] < window


def test_greedy_output_is_that_of_plain_decoding(arm_server: Server, greedy: Answers) -> None:
    together = arm_server.generate(PROMPTS, 0)
    check_counts(together)
    assert ids(together) == greedy
    assert ids([arm_server.generate([p], 0)[0] for p in PROMPTS]) == greedy
    assert sum(a["meta_info"]["spec_num_correct_drafts"] for a in together) > 0, "the accept path never ran"


def test_sampling_runs_and_is_no_greedy_in_disguise(arm_server: Server, greedy: Answers) -> None:
    sampled = arm_server.generate(PROMPTS, 1)
    check_counts(sampled)
    assert ids(sampled) != greedy
    assert ids(sampled) != ids(arm_server.generate(PROMPTS, 1))  # the generator moves on


def test_a_nucleus_of_one_token_is_greedy_decoding(arm_server: Server, greedy: Answers) -> None:
    """Sampling verification with a known answer: top_p near 0 leaves one token, whatever the coins and the drafts."""
    assert ids(arm_server.generate(PROMPTS, 1, top_p=1e-6)) == greedy


def test_a_streamed_answer_is_the_same_answer(arm_server: Server, greedy: Answers) -> None:
    """Ours on SGLang's own stream: a chunk a block, the counts of the whole answer in the last."""
    sampling = Sampling(temperature=0.0, max_new_tokens=24, ignore_eos=True)

    async def ask(stream: bool) -> Answer:
        async with Client(f"http://127.0.0.1:{arm_server.launch.port}", 60, stream) as client:
            return await client.generate(PROMPTS[0], sampling, f"stream-{stream}")

    streamed, whole = (asyncio.run(ask(stream)) for stream in (True, False))
    assert list(streamed.output_ids) == list(whole.output_ids) == greedy[0]
    assert (streamed.verify_ct, streamed.histogram) == (whole.verify_ct, whole.histogram)
    assert streamed.chunk_tokens is not None
    assert streamed.chunk_s is not None
    assert (streamed.chunk_tokens[0], streamed.chunk_tokens[-1]) == (1, 24)
    assert 1 < len(streamed.chunk_tokens) <= 1 + (streamed.verify_ct or 0)
    assert list(streamed.chunk_s) == sorted(streamed.chunk_s)


def test_server_is_attested_and_kept_its_word(arm_server: Server) -> None:
    """After both temperatures, so that a downgrade on the way shows."""
    launch = arm_server.launch
    check_server(arm_server, launch.arm, launch.proposal)
    assert all(count > 0 for count in eager_steps(arm_server).values())


def test_same_seed_repeats_and_another_differs(
    launch_of: Callable[..., Launch], nursery: Nursery, tmp_path: Path
) -> None:
    """Fresh servers, one request at a time: the coins come from the process generator (--random-seed)."""
    answers = []
    for run, seed in enumerate((42, 42, 43)):
        with serve(launch_of("lilicorr", "sampled", seed), tmp_path / f"log{run}", nursery) as server:
            answers.append(ids([server.generate([p], 1, tokens=16)[0] for p in PROMPTS[:2]]))
    assert answers[0] == answers[1] != answers[2]


def test_a_server_started_as_users_start_it(launch_of: Callable[..., Launch], greedy: Answers, tmp_path: Path) -> None:
    with serve(launch_of("dflash", "argmax"), tmp_path / "log", start_ordinarily) as server:
        check_server(server, "dflash", "argmax")
        assert ids(server.generate(PROMPTS, 0)) == greedy


def test_without_configuration_the_plugin_does_nothing(
    launch_of: Callable[..., Launch], nursery: Nursery, tmp_path: Path
) -> None:
    """An ordinary server beside an installed plugin: no attestation, so never measured."""
    with serve(launch_of("ar", "none"), tmp_path / "log", nursery, {"SPECBENCH_CONFIG": ""}) as server:
        info = server.get("/server_info")
    assert KEY not in info
    assert KEY not in info["internal_states"][0]


def test_a_planted_fault_is_seen_and_cannot_be_measured(
    launch_of: Callable[..., Launch], nursery: Nursery, greedy: Answers, tmp_path: Path
) -> None:
    """Greedy equality can fail: verify attention that lets every query see the whole block."""
    (tmp_path / "faults.py").write_text(_FAULT)
    launch = launch_of("dflash", "argmax")
    env = {"SPECBENCH_TEST_PATCH": "faults:see_the_future", "PYTHONPATH": f"{STAND_IN}{os.pathsep}{tmp_path}"}
    with serve(launch, tmp_path / "log", nursery, env) as server:
        attested = server.get("/server_info")[KEY]
        assert ids(server.generate(PROMPTS, 0)) != greedy
    assert attested["patches"]["test:faults:see_the_future"] == "applied"
    assert attested["verification"] == "a planted fault of a test"


_FAULT = """
def see_the_future():
    from sglang_specbench.serving.patches import attention
    honest = attention.verify_mask
    attention.verify_mask = lambda p, n, *, causal, window: honest(p, n, causal=False, window=window)
"""
