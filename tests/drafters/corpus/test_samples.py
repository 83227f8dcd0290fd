"""Samples: what is supervised is exactly what the target generated after the prompt it is served with."""

import copy
import json

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers  # noqa: E402
from transformers import PreTrainedTokenizerFast  # noqa: E402

from drafters.corpus.conversation import Conversation  # noqa: E402
from drafters.corpus.nemotron import stream  # noqa: E402
from drafters.corpus.samples import read_corpus, read_samples, render  # noqa: E402
from sglang_specbench.errors import UserError  # noqa: E402

# Qwen3's habit: an empty think preamble before the last answer and in the generation prompt, none in the history
TEMPLATE = """\
{%- for m in messages -%}
<|im_start|>{{ m.role + '\\n' }}
{%- if m.role == 'assistant' and loop.last %}<think>\n\n</think>\n\n{% endif %}{{ m.content }}<|im_end|>\n
{%- endfor -%}
{%- if add_generation_prompt %}<|im_start|>assistant\n<think>\n\n</think>\n\n{% endif -%}
"""


@pytest.fixture(scope="module")
def tokenizer():
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    special = ["<|im_start|>", "<|im_end|>"]
    trainer = trainers.BpeTrainer(
        vocab_size=300,
        special_tokens=special,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    bpe.train_from_iterator(["what is two and two?", "two and two is four."], trainer)
    return PreTrainedTokenizerFast(tokenizer_object=bpe, eos_token="<|im_end|>", chat_template=TEMPLATE)


def conversation(*contents):
    roles = ("user", "assistant")
    messages = tuple({"role": roles[i % 2], "content": c} for i, c in enumerate(contents))
    return Conversation("a", "math", messages)


def test_the_answer_and_its_end_are_supervised_and_the_think_preamble_is_not(tokenizer):
    sample = render(conversation("two and two?", "It is four."), tokenizer, 999)
    assert tokenizer.decode(sample.ids_S[sample.loss_S]) == "It is four.<|im_end|>"


def test_what_comes_before_the_answer_is_the_served_prompt(tokenizer):
    talk = conversation("two and two?", "It is four.")
    sample = render(talk, tokenizer, 999)
    first = int(sample.loss_S.nonzero()[0])
    prompt = tokenizer.apply_chat_template(
        list(talk.messages[:1]), add_generation_prompt=True, enable_thinking=False, return_dict=False
    )
    assert sample.ids_S[:first].tolist() == prompt


def test_every_answer_of_a_long_talk_is_supervised_even_when_it_repeats_the_question(tokenizer):
    sample = render(conversation("four", "four", "four?", "four"), tokenizer, 999)
    assert tokenizer.decode(sample.ids_S[sample.loss_S]) == "four<|im_end|>four<|im_end|>"


def test_a_long_sample_is_cut(tokenizer):
    sample = render(conversation("two?", "four " * 50), tokenizer, 60)
    assert len(sample.ids_S) == len(sample.loss_S) == 60


@pytest.fixture
def other_end(tokenizer):
    """A tokenizer whose end-of-sequence token is not what closes a turn."""
    other = copy.deepcopy(tokenizer)
    other.add_special_tokens({"eos_token": "<|endoftext|>"})
    return other


def test_the_end_of_a_turn_is_the_templates_and_not_the_end_of_sequence_token(other_end, tmp_path):
    path = write(tmp_path / "c.jsonl", row("a", "four"), {**row("b", "four"), "prompt_ids": [5], "output_ids": [7, 8]})
    corpus = read_corpus(path, other_end, 99)
    assert [s.id for s in corpus.samples] == ["a", "b"]
    sample = corpus.samples[0]
    assert other_end.decode(sample.ids_S[sample.loss_S]) == "four<|im_end|>"


@pytest.mark.parametrize("answer", ["s", "a", "user", "<|im_end|>", "assistant"])
def test_an_answer_that_the_role_header_holds_too_is_found_in_its_own_place(answer, tokenizer):
    sample = render(conversation("two?", answer), tokenizer, 999)
    assert tokenizer.decode(sample.ids_S[sample.loss_S]) == f"{answer}<|im_end|>"


def test_what_is_dropped_or_cut_is_counted_by_reason(tokenizer, tmp_path):
    rewriting = copy.deepcopy(tokenizer)
    rewriting.chat_template = TEMPLATE.replace("m.content }}", "m.content | replace('secret', '') }}")
    path = write(
        tmp_path / "c.jsonl", row("a", "four"), {"id": "b", "error": "timeout"}, row("c", ""), row("d", "secret four"),
        row("e", "four " * 60), {**row("f", "two and two is"), "cut": 1},
    )  # fmt: skip
    corpus = read_corpus(path, rewriting, 60)
    assert [s.id for s in corpus.samples] == ["a", "e", "f"]
    assert corpus.counts == {
        "dropped: a recorded failure": 1, "dropped: no answer of two tokens": 1,
        "dropped: the chat template rewrites a message": 1, "cut: to 60 tokens": 1,
        "cut: an answer reached the token limit": 1,
    }  # fmt: skip


def test_a_template_without_an_end_of_turn_is_refused(tokenizer, tmp_path):
    bare = copy.deepcopy(tokenizer)
    bare.chat_template = "{% for m in messages %}{{ m.role }}:\n{{ m.content }}\n\n{% endfor %}"
    with pytest.raises(UserError, match="closes an answer with"):
        read_corpus(write(tmp_path / "c.jsonl", row("a", "four")), bare, 99)


def test_one_id_for_two_conversations_is_refused(tokenizer, tmp_path):
    with pytest.raises(UserError, match=r"c.jsonl:2: the id 'a' for a second time"):
        read_samples(write(tmp_path / "c.jsonl", row("a", "four"), row("a", "two")), tokenizer, 99)


def write(path, *rows):
    path.write_text("".join(row if isinstance(row, str) else json.dumps(row) + "\n" for row in rows))
    return path


def row(name, answer):
    messages = [{"role": "user", "content": "two?"}, {"role": "assistant", "content": answer}]
    return {"id": name, "category": "math", "messages": messages}


def test_failures_and_empty_answers_are_no_samples(tokenizer, tmp_path):
    path = write(tmp_path / "c.jsonl", row("a", "four"), {"id": "b", "error": "timeout"}, row("c", ""))
    assert [s.id for s in read_samples(path, tokenizer, 99)] == ["a"]


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (['{"id": 1\n'], "c.jsonl:1: not JSON"),
        (["[]\n"], "c.jsonl:1: expected an object"),
        ([{"id": "a"}], "c.jsonl:1: messages: expected a list"),
        ([row("a", "")], "no conversation"),
    ],
)
def test_a_bad_corpus_is_named(lines, said, tokenizer, tmp_path):
    with pytest.raises(UserError, match=said):
        read_samples(write(tmp_path / "c.jsonl", *lines), tokenizer, 99)


def test_given_tokens_are_taken_as_they_are(tokenizer, tmp_path):
    """An answer cut at the length limit has no end token, and none is supervised."""
    exact = {**row("a", "four"), "prompt_ids": [5, 6], "output_ids": [7, 8, 9]}
    (sample,) = read_samples(write(tmp_path / "c.jsonl", exact), tokenizer, 99)
    assert sample.ids_S.tolist() == [5, 6, 7, 8, 9]
    assert sample.loss_S.tolist() == [False, False, True, True, True]


def test_the_papers_corpus_loader_reads_a_local_copy(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))
    rows = [
        {"uuid": f"{split}-{i}", "messages": [{"role": "system", "content": ""}, *row("x", "four")["messages"]]}
        for split in ("code", "chat")
        for i in range(3)
    ]
    files = {
        split: str(write(tmp_path / f"{split}.jsonl", *(r for r in rows if r["uuid"].startswith(split))))
        for split in ("code", "chat")
    }
    found = list(stream(("code", "chat"), 2, path="json", data_files=files))
    assert [(c.id, c.category) for c in found] == [
        ("code-0", "code"), ("code-1", "code"), ("chat-0", "chat"), ("chat-1", "chat"),
    ]  # fmt: skip
    assert [m["role"] for m in found[0].messages] == ["user", "assistant"]
