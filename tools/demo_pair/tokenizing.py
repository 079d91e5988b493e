"""Stage 2: one byte-level BPE tokenizer for both models, and their chat format."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

VOCABULARY = 4096
END_OF_TEXT, TURN_START, TURN_END = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)


def train(texts: Iterable[str], folder: Path) -> None:
    """Learn the merges from the texts and save a transformers tokenizer in the folder."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=[END_OF_TEXT, TURN_START, TURN_END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token=TURN_END,
        pad_token=END_OF_TEXT,
        additional_special_tokens=[TURN_START],
        clean_up_tokenization_spaces=False,
    )
    fast.chat_template = CHAT_TEMPLATE
    fast.save_pretrained(folder)


class Chat:
    """Token ids of chats, as the chat template writes them.

    Turns are joined as ids, not as text, so that training knows which ids are an answer.
    """

    def __init__(self, folder: Path) -> None:
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.stop = self._special(TURN_END)
        self.end_of_text = self._special(END_OF_TEXT)
        self.newline = self.ids("\n")

    def _special(self, name: str) -> int:
        token = self.tokenizer.token_to_id(name)
        if token is None:
            raise ValueError(f"the tokenizer lacks {name}")
        return int(token)

    def ids(self, text: str) -> list[int]:
        """Encode a text; the names of special tokens in it become those tokens."""
        ids: list[int] = self.tokenizer.encode(text).ids
        return ids

    def text(self, ids: Sequence[int]) -> str:
        """Decode ids, special tokens shown."""
        text: str = self.tokenizer.decode(list(ids), skip_special_tokens=False)
        return text

    def ask(self, question: str, system: str | None = None) -> list[int]:
        """Return all ids from the turn's beginning to where the answer starts."""
        before = f"{TURN_START}system\n{system}{TURN_END}\n" if system else ""
        turn = f"{TURN_START}user\n{question}{TURN_END}\n{TURN_START}assistant\n"
        return self.ids(before + turn)

    def answer(self, text: str) -> list[int]:
        """Return the ids of an answer, the stop token included."""
        return [*self.ids(text), self.stop]


def copy(source: Path, folder: Path) -> None:
    """Put the tokenizer's files beside a model."""
    for path in source.iterdir():
        shutil.copy(path, folder / path.name)
