"""A bundle that MNN runs, as a `LanguageModel`. The only module that imports MNN.

MNN ends the process on what it does not expect, holds the interpreter's lock during a forward and
prints to file descriptor 1. So this belongs into a process of its own, a bundle belongs through
`tokforge_engine.bundle_check` first, and ids are checked here before they reach MNN.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from tokforge_engine.bundle_check import CheckedBundle
from tokforge_engine.errors import BundleDamaged, EngineError, EngineUnavailable, Incompatible
from tokforge_engine.generation import Message
from tokforge_engine.settings import RuntimeSettings

if TYPE_CHECKING:
    from tokforge_engine.model import Logits

_NEEDED = (
    "apply_chat_template",
    "erase_history",
    "forward",
    "load",
    "set_config",
    "set_context",
    "stoped",
    "tokenizer_decode",
    "tokenizer_encode",
)


class MnnModel:
    """One loaded bundle with its KV cache.

    Args:
        bundle: checked.
        settings: how to run it.
        scratch: a directory for whatever MNN writes; never the bundle's.
        widths: verify forwards take 1 to this many ids, each prepared here, since MNN copies the
            module for every width it meets. 1 is enough for a draft.
        exact: see `tokforge_engine.settings.Numerics`.
        context_length: where the bundle does not say and the caller knows.

    Raises:
        EngineUnavailable: MNN is not installed, or lacks a call that is needed.
        EngineError: MNN could not load the bundle.
        BundleDamaged: its configuration is another model's.
        Incompatible: the bundle cannot give logits for each of several ids.
    """

    def __init__(
        self,
        bundle: CheckedBundle,
        settings: RuntimeSettings,
        scratch: Path,
        *,
        widths: int = 1,
        exact: bool = False,
        context_length: int | None = None,
    ) -> None:
        self._bundle = bundle
        self._mnn = _create(bundle.path)
        self._mnn.set_config(json.dumps(_config(bundle, settings, scratch)))
        if not self._mnn.load():
            raise EngineError(
                f"MNN could not load the bundle at {bundle.path}",
                hint="tokforge verify --full hashes its files",
            )
        self._length = 0
        # Tokens that MNN holds; more than `_length` after a rollback, until the next forward.
        self._cached = 0
        self._context_length = bundle.context_length or context_length
        self._texts: dict[int, bytes] = {}
        self._stops: dict[int, bool] = {}
        self._vocabulary = 1
        self._vocabulary = self._forward([0], decoding=True).shape[1]
        # An id beyond the embedding's end would be read from whatever lies behind it.
        if bundle.embedding_rows < self._vocabulary:
            raise BundleDamaged(
                f"llm_config.json does not fit llm.mnn in the bundle at {bundle.path}: it gives "
                f"{bundle.embedding_rows:,} tokens a vector, the model knows {self._vocabulary:,}",
                hint="tokforge verify --full hashes its files",
            )
        self.rollback(0)
        self._widths = [1]
        self._exact = exact
        self._thinking: bool | None = None
        # What a tokenizer puts before any text belongs to the beginning of a prompt only.
        self._prefix = self._tokens_of("")
        if exact:
            self._widths = self._exact_widths(widths)
        elif not all(self.prepare(width) for width in range(2, widths + 1)):
            self._refuse_verifying()

    def prepare(self, width: int) -> bool:
        """Make `verify` ready for `width` ids; False where the bundle gives the last row only.

        The cache must be empty.
        """
        rows = len(self._rows_of(width))
        self.rollback(0)
        if rows == width and width not in self._widths:
            self._widths = sorted([*self._widths, width])
        return rows == width

    def _refuse_verifying(self) -> NoReturn:
        raise Incompatible(
            f"the bundle at {self._bundle.path} gives logits for its last token only, so it "
            "cannot verify a draft",
            hint="run it without a draft, or use an export that has the logits_index input",
        )

    def _exact_widths(self, least: int) -> list[int]:
        """Widths that compute the same bits for a row, the largest at least `least`.

        MNN runs a forward in tiles of rows, and a row that is left over goes through another
        kernel. Which widths leave one over depends on the processor, so it is tried: what pairs
        of rows give, one pair after the other, is what each width must give in one forward.
        """
        pairs = [self._forward([row, row + 1], decoding=True).copy() for row in range(0, 20, 2)]
        rows = [row for pair in pairs for row in pair]
        exact: list[int] = []
        for width in range(2, len(rows) + 1):
            got = self._rows_of(width)
            if len(got) != width:
                self._refuse_verifying()
            if all((ours == theirs).all() for ours, theirs in zip(got, rows, strict=False)):
                exact.append(width)
                if width >= least:
                    self.rollback(0)
                    return exact
        raise Incompatible(
            f"numerics exact cannot be had here: no forward of {least} or more tokens computes "
            f"the same numbers as single steps do",
            hint="numerics fast, or a memory setting of normal",
        )

    def _rows_of(self, width: int) -> Logits:
        """Logits of the first `width` ids, from an empty cache."""
        self.rollback(0)
        return self._forward(range(width), decoding=True)

    @property
    def vocabulary(self) -> int:
        """Columns of the logits; ids beyond the tokenizer's are padding."""
        return self._vocabulary

    @property
    def length(self) -> int:
        """Tokens in the KV cache."""
        return self._length

    @property
    def context_length(self) -> int | None:
        """As the bundle says, else as the caller said."""
        return self._context_length

    @property
    def widest(self) -> int:
        """How many ids `verify` takes."""
        return self._widths[-1]

    @property
    def tokenizer_file(self) -> Path:
        """Where its tokenizer was read from."""
        return self._bundle.tokenizer

    def extend(self, ids: Sequence[int]) -> Logits:
        """Append ids; logits after the last, a view of shape [1, vocabulary]."""
        if self._exact and len(ids) % 2:
            # No row may be left over: all but the last in whole tiles, and the last as a step.
            if len(ids) > 1:
                self._forward(ids[:-1], decoding=False)
            return self.verify(ids[-1:])
        # As a prefill, MNN takes any length in one module and keeps only the last row.
        return self._forward(ids, decoding=len(ids) == 1)

    def verify(self, ids: Sequence[int]) -> Logits:
        """Append ids; logits after each, a view of shape [len(ids), vocabulary]."""
        count = len(ids)
        width = next((width for width in self._widths if width >= count), None)
        if width is None:
            raise EngineError(
                f"a verification of {count} tokens; the model was loaded for {self._widths[-1]}"
            )
        logits = self._forward([*ids, *[ids[0]] * (width - count)], decoding=True)[:count]
        # What filled the width up is forgotten with the next forward.
        self._length -= width - count
        return logits

    def rollback(self, length: int) -> None:
        """Forget all but the first `length` tokens."""
        if not 0 <= length <= self._length:
            raise EngineError(f"a rollback to {length} tokens; the cache holds {self._length}")
        self._length = length

    def is_stop(self, token: int) -> bool:
        """Whether the bundle's tokenizer lists `token` among those that end an answer."""
        if (stops := self._stops.get(token)) is None:
            self._mnn.set_context({"current_token": token})
            stops = self._stops[token] = bool(self._mnn.stoped())
        return stops

    def token_bytes(self, token: int) -> bytes:
        """UTF-8 bytes of a token, perhaps a part of a character; empty for padding."""
        if (text := self._texts.get(token)) is None:
            try:
                text = self._mnn.tokenizer_decode(token).encode()
            except UnicodeDecodeError as error:
                text = bytes(error.object)
            self._texts[token] = text
        return text

    def encode(self, text: str, continues: bool = False) -> list[int]:
        """Token ids of `text`, special tokens in it recognised; `continues` a text before it."""
        ids = self._tokens_of(text)
        return ids[len(self._prefix) :] if continues else ids

    def _tokens_of(self, text: str) -> list[int]:
        return [int(token) for token in self._mnn.tokenizer_encode(text)]

    def render(
        self,
        messages: Sequence[Message],
        *,
        thinking: bool | None = None,
        tools: Sequence[str] = (),
    ) -> str:
        """A chat as text, rendered by the bundle's template up to the answer's beginning.

        Args:
            messages: the chat.
            thinking: what the template is told as `enable_thinking`; None tells it nothing.
            tools: what the template is told as `tools`, each a JSON object.

        Raises:
            Incompatible: the template made nothing of these messages, or of these tools.
        """
        if thinking is None and self._thinking is not None:
            # It cannot be told nothing again, and templates that know the word take true for it.
            thinking = True
        if thinking != self._thinking:
            self._tell_template("enable_thinking", thinking)
            self._thinking = thinking
        text = self._apply_template(messages)
        if not tools:
            return text
        self._tell_template("tools", [json.loads(tool) for tool in tools])
        try:
            with_tools = self._apply_template(messages)
        finally:
            self._tell_template("tools", [])
        if with_tools == text:
            raise Incompatible("the bundle's chat template knows no tools")
        return with_tools

    def _tell_template(self, name: str, value: object) -> None:
        self._mnn.set_config(json.dumps({"jinja": {"context": {name: value}}}))

    def _apply_template(self, messages: Sequence[Message]) -> str:
        text: str = self._mnn.apply_chat_template([_for_template(message) for message in messages])
        if not text:
            roles = ", ".join(message.role for message in messages) or "no messages"
            raise Incompatible(f"the bundle's chat template makes no prompt of: {roles}")
        return text

    def _forward(self, ids: Sequence[int], *, decoding: bool) -> Logits:
        if not ids or min(ids) < 0 or max(ids) >= self._vocabulary:
            raise EngineError(
                f"token ids expected 0 to {self._vocabulary - 1}, "
                f"got {f'{min(ids)} to {max(ids)}' if ids else 'none'}"
            )
        if self._length < self._cached:
            self._mnn.erase_history(self._length, 0)
        # MNN takes a forward for a prefill while it has generated nothing.
        self._mnn.set_context({"gen_seq_len": int(decoding)})
        logits: Logits = self._mnn.forward(list(ids)).read()[0]
        self._length += len(ids)
        self._cached = self._length
        return logits


def _for_template(message: Message) -> dict[str, str]:
    if not message.reasoning and not message.tool_calls:
        return {"role": message.role, "content": message.content}
    calls = [
        {
            "type": "function",
            "function": {"name": call.name, "arguments": json.loads(call.arguments)},
        }
        for call in message.tool_calls
    ]
    whole = {
        "role": message.role,
        "content": message.content,
        **({"reasoning_content": message.reasoning} if message.reasoning else {}),
        **({"tool_calls": calls} if calls else {}),
    }
    # MNN hands a message of this role to the template as the object that its content is.
    return {"role": "json", "content": json.dumps(whole, ensure_ascii=False)}


def first_difference(target: MnnModel, draft: MnnModel) -> int | None:
    """The lowest id that means one text to the target and another to the draft, or None.

    Ids that only one of them has are padding, which is tolerated.
    """
    if target.tokenizer_file.read_bytes() == draft.tokenizer_file.read_bytes():
        return None
    for token in range(min(target.vocabulary, draft.vocabulary)):
        ours, theirs = target.token_bytes(token), draft.token_bytes(token)
        if ours and theirs and ours != theirs:
            return token
    return None


def _create(path: Path) -> Any:
    try:
        import MNN.llm
    except ImportError as error:
        raise EngineUnavailable(
            f"MNN cannot be imported here ({error})",
            hint="pip install MNN (wheels exist for Linux, macOS and Windows on x86-64, and for "
            "Linux and macOS on ARM); everything but running models works without it",
        ) from None
    model = MNN.llm.create(str(path / "config.json"))
    # The wrapper around this object drops what its methods return.
    inner = getattr(model, "_c_obj", None)
    missing = [name for name in _NEEDED if not hasattr(inner, name)]
    if missing:
        raise EngineUnavailable(
            f"this version of MNN lacks {', '.join(missing)}", hint="pip install 'MNN>=3.6.1'"
        )
    return inner


def _config(bundle: CheckedBundle, settings: RuntimeSettings, scratch: Path) -> dict[str, object]:
    """What is laid over the bundle's own configuration."""
    chosen = {
        "backend_type": settings.backend,
        "precision": settings.precision,
        "memory": settings.memory,
        "power": settings.power,
        "dynamic_option": settings.dynamic_option,
    }
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        **{key: value for key, value in chosen.items() if value is not None},
        "thread_num": settings.threads or min(bundle.threads or 64, cores or 1),
        # In this mode MNN gives logits for the last id of a prefill and for each id in decoding.
        "speculative_type": "lookahead",
        "draft_predict_length": 1,
        "all_logits": False,
        "reuse_kv": True,
        "chunk": 0,
        # Whatever it writes, it writes beside the bundle, not into it.
        "tmp_path": str(scratch),
        "prefix_cache_path": str(scratch),
        "use_mmap": False,
        "kvcache_mmap": False,
    }
