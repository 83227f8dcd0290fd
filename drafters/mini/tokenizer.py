"""The mini tokenizer: byte-level BPE of 2048 entries with single digits and the Qwen3 chat markers.

Knows: the special tokens and their ids (`<|mask|>` is the drafters' mask and never occurs in text) and the chat
template. The template accepts `enable_thinking` and ignores it: the model was trained without think blocks, and
the training text is rendered by this same template. Not here: what the tokenizer is trained on.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from drafters.mini.example import Example

VOCAB_SIZE = 2048
SPECIAL_TOKENS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|mask|>", "<think>", "</think>")
END_OF_TEXT_ID, START_ID, END_ID, MASK_ID = range(4)  # the trainer numbers special tokens first, in order

CHAT_TEMPLATE = """\
{%- for message in messages %}
{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
{{- '<|im_start|>assistant\\n' }}
{%- endif %}
"""


def train_tokenizer(texts: Iterable[str], folder: Path) -> PreTrainedTokenizerFast:
    """Train on the texts and save a tokenizer that `AutoTokenizer` loads from `folder` offline."""
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCAB_SIZE,
        special_tokens=list(SPECIAL_TOKENS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    bpe.train_from_iterator(texts, trainer)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=bpe,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        mask_token="<|mask|>",
        additional_special_tokens=["<|im_start|>"],
        chat_template=CHAT_TEMPLATE,
        model_max_length=4096,
        clean_up_tokenization_spaces=False,
    )
    tokenizer.save_pretrained(folder)
    return tokenizer


def conversation(example: Example) -> str:
    """The rendered training text of one example, its closing marker included."""
    return prompt(example) + f"{example.assistant}<|im_end|>\n"


def prompt(example: Example) -> str:
    """What the chat template renders for the request alone, with the generation prompt."""
    return f"<|im_start|>user\n{example.user}<|im_end|>\n<|im_start|>assistant\n"
