"""Answers that follow a grammar, whatever the model would rather say.

A grammar is a text in llguidance's variant of Lark, which also holds JSON schemas
(``start: %json {...}``). The target's choice is made among the tokens that the grammar allows
after what was said so far; a drafted token that it forbids is never chosen, so never accepted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tokforge_engine.errors import Incompatible, InvalidRequest

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tokforge_engine.choice import Choose


class Vocabulary:
    """The texts of all tokens, as a grammar needs them; made once a model.

    Args:
        texts: bytes of each id, empty for padding.
        stops: ids that end an answer, at least one.
        encode: ids of a text that continues another.

    Raises:
        Incompatible: llguidance is not installed, or nothing would end the answer.
    """

    def __init__(
        self, texts: Sequence[bytes], stops: Sequence[int], encode: Callable[[str], list[int]]
    ) -> None:
        try:
            import llguidance
        except ImportError:
            raise Incompatible(
                "a grammar for the answer needs llguidance, which is not installed",
                hint="pip install 'tokforge-models[serve]'",
            ) from None
        if not stops:
            raise Incompatible("the bundle has no token that ends an answer; a grammar needs one")
        self._llguidance: Any = llguidance
        self.size = len(texts)
        self.stops = tuple(stops)
        tokens = _Tokens(texts, stops, encode)
        self._tokenizer = llguidance.LLTokenizer(
            llguidance.TokenizerWrapper(tokens), n_vocab=self.size, eos_token=list(stops)
        )

    def matcher(self, grammar: str) -> Any:
        """A new beginning of `grammar`.

        Raises:
            InvalidRequest: it is no grammar, or uses what is not implemented.
        """
        matcher = self._llguidance.LLMatcher(self._tokenizer, grammar, log_level=0)
        if matcher.is_error():
            raise InvalidRequest(f"the grammar cannot be used: {_first_line(matcher.get_error())}")
        return matcher


class Constraint:
    """Chooses the tokens of one answer among those that a grammar allows.

    Args:
        vocabulary: the target's.
        grammar: see above.
        choose: takes one row of logits, in which -inf marks what is forbidden.

    Raises:
        InvalidRequest: the grammar cannot be used.
    """

    def __init__(self, vocabulary: Vocabulary, grammar: str, choose: Choose) -> None:
        self._vocabulary = vocabulary
        self._matcher = vocabulary.matcher(grammar)
        self._choose = choose

    def __call__(self, row: NDArray[np.float32]) -> int:
        """The next token, from logits of shape [vocabulary]; the grammar moves on.

        Raises:
            InvalidRequest: nothing fulfils the grammar, or it takes more work than is allowed.
        """
        import numpy as np

        bits = np.frombuffer(self._matcher.compute_bitmask(), np.uint8)
        if self._matcher.is_stopped() and not self._matcher.is_accepting():
            raise InvalidRequest(
                "the grammar cannot be followed: no token of this vocabulary is what it wants next"
            )
        allowed = np.unpackbits(bits, count=len(row), bitorder="little").view(bool)
        token = self._choose(np.where(allowed, row, np.float32(-np.inf)))
        # What comes after the end in the same round is not handed out.
        if not self._matcher.is_stopped() and not self._matcher.consume_token(token):
            raise InvalidRequest(
                f"the grammar cannot be followed: {_first_line(self._matcher.get_error())}"
            )
        return token


class _Tokens:
    """What llguidance asks of a tokenizer."""

    bos_token_id = None

    def __init__(
        self, texts: Sequence[bytes], stops: Sequence[int], encode: Callable[[str], list[int]]
    ) -> None:
        self.tokens = list(texts)
        self.eos_token_id = stops[0]
        # Their texts may stand in no string: choosing one would end the answer in its middle.
        self.special_token_ids = list(stops)
        self._encode = encode

    def __call__(self, text: str | bytes) -> list[int]:
        return self._encode(text if isinstance(text, str) else text.decode(errors="replace"))


def _first_line(error: str) -> str:
    return error.strip().partition("\n")[0][:300]
