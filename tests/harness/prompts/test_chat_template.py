"""Messages become the ids that the chat template says, thinking off; any change of template or tokenizer is seen."""

import json

import pytest

from harness.prompts import chat_template as render
from harness.prompts.prompt_set import Prompt
from sglang_specbench.errors import UserError

TEMPLATE = (
    "{% for m in messages %}{{ m.role }} {{ m.content }} {% endfor %}"
    "{% if add_generation_prompt %}assistant {% if not enable_thinking %}nothink{% endif %}{% endif %}"
)
WORDS = ["user", "assistant", "nothink", "one", "two", "three", "?"]


@pytest.fixture
def folder(tmp_path):
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace

    tokenizer = Tokenizer(WordLevel({w: i for i, w in enumerate(WORDS)}, unk_token="?"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "chat_template": TEMPLATE}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    return tmp_path


@pytest.mark.slow
def test_two_turns_with_the_live_answer_between_them(folder):
    renderer = render.Renderer(folder)
    words = lambda ids: [WORDS[i] for i in ids]
    prompt = Prompt(id="p", turns=("one", "two"))
    assert words(renderer.render(render.messages(prompt))) == [
        "user",
        "one",
        "assistant",
        "nothink",
    ]
    second = renderer.render(render.messages(prompt, ["three three"]))
    assert words(second) == ["user", "one", "assistant", "three", "three", "user", "two", "assistant", "nothink"]
    assert renderer.decode([3, 4]) == "one two"
    prompts = [Prompt(id="a", turns=("one",), category="x"), Prompt(id="b", turns=("one two three",), category="x")]
    assert render.lengths(prompts, renderer) == {"x": [4, 6]}


@pytest.mark.slow
def test_a_target_without_a_tokenizer_is_named(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(UserError, match="no tokenizer there"):
        render.Renderer(tmp_path)


def test_messages_use_one_more_turn_than_there_are_answers():
    prompt = Prompt(id="p", turns=("a", "b", "c"))
    assert [m["content"] for m in render.messages(prompt)] == ["a"]
    assert [m["content"] for m in render.messages(prompt, ["1", "2"])] == ["a", "1", "b", "2", "c"]
    assert [m["role"] for m in render.messages(prompt, ["1"])] == ["user", "assistant", "user"]
    ruled = Prompt(id="p", turns=("a", "b"), system="s")
    assert [m["content"] for m in render.messages(ruled, ["1"])] == ["s", "a", "1", "b"]


@pytest.mark.slow
def test_a_system_message_is_sent_or_the_template_is_refused(folder):
    ruled = Prompt(id="p", turns=("one",), system="two")
    words = [WORDS[i] for i in render.Renderer(folder).render(render.messages(ruled))]
    assert words == ["?", "two", "user", "one", "assistant", "nothink"]
    deaf = TEMPLATE.replace("for m in messages", "for m in messages if m.role != 'system'")
    (folder / "chat_template.jinja").write_text(deaf)
    with pytest.raises(UserError, match="its chat template leaves the system message out"):
        render.Renderer(folder).render(render.messages(ruled))
    (folder / "chat_template.jinja").write_text("{{ raise_exception('no system role') }}")
    with pytest.raises(UserError, match="its chat template fails: no system role"):
        render.Renderer(folder).render(render.messages(ruled))


@pytest.mark.parametrize("name", ["tokenizer.json", "tokenizer_config.json", "chat_template.jinja"])
def test_the_digest_sees_every_file(folder, name):
    before = render.render_digest(folder)
    assert before == render.render_digest(folder)
    with (folder / name).open("a") as handle:
        handle.write(" ")
    assert render.render_digest(folder) != before


def test_ids_hash_separates_what_looks_alike():
    assert render.ids_hash([1, 23]) != render.ids_hash([12, 3])
    assert render.ids_hash([1, 2]) != render.ids_hash([2, 1])
    assert render.ids_hash(range(3)) == render.ids_hash((0, 1, 2))
