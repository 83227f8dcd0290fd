"""The shipped mini target, its tokenizer and prompts, and the builder that made them.

Everything here is exact: no stochastic test.
"""

import itertools
import json
import re
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="the mini target needs torch")

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from drafters.mini import arithmetic, functions
from drafters.mini.corpus import DOMAINS, SEED, digest
from drafters.mini.example import Example
from drafters.mini.pretrain import IGNORED, batches, loss_of, target_config
from drafters.mini.tokenizer import END_ID, MASK_ID, SPECIAL_TOKENS, VOCAB_SIZE, conversation, prompt
from sglang_specbench.digest import weights_digest

pytestmark = pytest.mark.torch

MINI = Path(arithmetic.__file__).parent
MANIFEST = json.loads((MINI / "manifest.json").read_text())


@pytest.fixture(scope="module")
def tokenizer():
    return AutoTokenizer.from_pretrained(MINI / "target")


@pytest.fixture(scope="module")
def target():
    return AutoModelForCausalLM.from_pretrained(MINI / "target", dtype=torch.float32).eval()


def shipped_prompts(domain):
    return [json.loads(line) for line in (MINI / f"prompts/{domain}.jsonl").read_text().splitlines()]


def test_every_byte_round_trips(tokenizer):
    text = "".join(map(chr, range(256))) + " é ☃ 𝄞\r\n\t  x"
    assert tokenizer.decode(tokenizer(text)["input_ids"]) == text


def test_special_tokens_have_the_first_ids(tokenizer, target):
    assert tokenizer.convert_tokens_to_ids(list(SPECIAL_TOKENS)) == list(range(len(SPECIAL_TOKENS)))
    assert (tokenizer.eos_token_id, target.config.eos_token_id, tokenizer.mask_token_id) == (END_ID, END_ID, MASK_ID)
    assert len(tokenizer) == target.config.vocab_size == VOCAB_SIZE


@pytest.mark.parametrize("domain", DOMAINS)
def test_prompts_never_hold_the_mask(tokenizer, domain):
    rows = shipped_prompts(domain)
    assert len(rows) == 40
    for row in rows:
        assert row["category"] == domain
        assert MASK_ID not in tokenizer(row["turns"][0])["input_ids"]


@pytest.mark.parametrize("enable_thinking", [False, True])
def test_serving_renders_what_training_rendered(tokenizer, enable_thinking):
    example = Example("x", "code", "Complete this:\ndef f():", "    pass", held_out=False)
    user = {"role": "user", "content": example.user}
    assistant = {"role": "assistant", "content": example.assistant}
    render = {"tokenize": False, "enable_thinking": enable_thinking}
    assert tokenizer.apply_chat_template([user], add_generation_prompt=True, **render) == prompt(example)
    assert tokenizer.apply_chat_template([user, assistant], **render) == conversation(example)


def test_the_shipped_target_is_the_recorded_one():
    assert weights_digest(MINI / "target") == MANIFEST["target"]["digest"]


def test_weights_are_bf16_and_fit_the_geometry(target):
    stored = AutoModelForCausalLM.from_pretrained(MINI / "target", dtype="auto")
    assert {p.dtype for p in stored.parameters()} == {torch.bfloat16}
    expected = target_config().to_dict()
    assert all(target.config.to_dict()[key] == expected[key] for key in ("hidden_size", "rope_parameters", "head_dim"))


def test_everything_shipped_stays_under_25_megabytes():
    assert sum(path.stat().st_size for path in MINI.rglob("*") if path.is_file()) < 25_000_000


def test_target_answers_arithmetic_and_stops(tokenizer, target):
    text = "What is 21 + 34?"
    inputs = tokenizer(prompt(Example("x", "arithmetic", text, "", held_out=False)), return_tensors="pt")
    ids = target.generate(**inputs, max_new_tokens=160, do_sample=False)[0, inputs.input_ids.shape[1] :]
    assert ids[-1] == END_ID
    assert "21" in tokenizer.decode(ids)
    assert "Answer:" in tokenizer.decode(ids)


def test_arithmetic_answers_are_right():
    for example in itertools.islice(arithmetic.examples(7), 500):
        for line in example.assistant.splitlines():
            if " = " in line and " + " in line.split(" = ")[0] and line.startswith("So "):
                left, right = line.removeprefix("So ").removesuffix(".").split(" = ")
                assert eval(left) == int(right)


def test_arithmetic_stream_is_the_recorded_one():
    stream = list(itertools.islice(arithmetic.examples(SEED), 1000))
    assert digest(stream) == MANIFEST["corpus"]["arithmetic_first_1000_sha256"]


def test_training_and_held_out_operands_are_disjoint():
    sides = {True: set(), False: set()}
    for example in itertools.islice(arithmetic.examples(SEED), 5000):
        pair = tuple(sorted(map(int, re.findall(r"\d+", example.user)[:2])))
        sides[example.held_out].add(pair)
    assert sides[True]
    assert not sides[True] & sides[False]


def test_pieces_of_a_function_join_to_the_function():
    source = "def f(x):\n" + "\n".join(f"    x += {i}  # {'.' * 40}" for i in range(40))
    pieces = list(functions.completions(source))
    head = pieces[0][0].removeprefix("Complete this function:\n")
    assert "\n".join([head, *(body for _, body in pieces)]) == source
    assert len(pieces) > 2


def test_an_epoch_of_batches_holds_all_but_the_last_longest_once():
    sequences = [[i] * (2 + i % 7) for i in range(30)]
    stream = batches(sequences, tokens=20, seed="s")
    seen = []
    while len(seen) < 27:
        labels_BT = next(stream)
        assert labels_BT.numel() <= 20
        seen += [row[row != IGNORED][0].item() for row in labels_BT]
    assert len(seen) == len(set(seen))
    assert {len(sequences[i]) for i in set(range(30)) - set(seen)} <= {8}


def test_padding_does_not_change_the_loss(target):
    short, long = list(range(10, 30)), list(range(100, 160))
    pair = torch.nn.utils.rnn.pad_sequence([torch.tensor(short), torch.tensor(long)], True, IGNORED)
    with torch.inference_mode():
        alone = [loss_of(target, torch.tensor([ids])).item() for ids in (short, long)]
        expected = (alone[0] * 19 + alone[1] * 59) / 78
        assert loss_of(target, pair).item() == pytest.approx(expected, abs=1e-4)
