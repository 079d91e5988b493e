"""Whether a draft's tokens mean the same to its target. Pure: two fingerprints in."""

from __future__ import annotations

from tokforge_models.model_files.fingerprint import Fingerprint


def compatible(target: Fingerprint, draft: Fingerprint) -> str | None:
    """Say why the draft cannot work for the target, or None if it can.

    Every id must have the same bytes on both sides. Padding of the vocabulary beyond the
    tokenizer does not count: it is never text, and a draft never proposes an id that the target
    has not. Special and stop ids may differ (see `differences`): the target alone decides what is
    emitted and where an answer ends.
    """
    for fingerprint, noun in ((target, "target"), (draft, "draft")):
        if reason := rollback_fault(fingerprint):
            return f"the {noun} {reason}"
    longest = max(len(target.tokens), len(draft.tokens))
    if target.tokens == draft.tokens:
        return None
    for token_id in range(longest):
        ours, theirs = _text(target, token_id), _text(draft, token_id)
        if ours != theirs:
            return (
                f"the vocabularies differ: id {token_id} is {_shown(ours)} in the target and "
                f"{_shown(theirs)} in the draft"
            )
    return None


def rollback_fault(fingerprint: Fingerprint) -> str | None:
    """Say why speculation cannot work with this model at all, or None if it can."""
    if fingerprint.attention in {"linear", "mixed"}:
        return "has linear attention, whose state cannot be rolled back to an earlier token"
    return None


def differences(target: Fingerprint, draft: Fingerprint) -> tuple[str, ...]:
    """What differs between two compatible models and is worth knowing, one sentence each."""
    notes = []
    for noun, ours, theirs in (
        ("stop", target.stop_ids, draft.stop_ids),
        ("special", target.special_ids, draft.special_ids),
    ):
        only = [
            f"only the {side} has {_listed(ids, target)}"
            for side, ids in (("target", ours - theirs), ("draft", theirs - ours))
            if ids
        ]
        if only:
            notes.append(f"the {noun} tokens differ: {', '.join(only)}; the target's count")
    if (
        target.context_length is not None
        and draft.context_length is not None
        and draft.context_length < target.context_length
    ):
        notes.append(
            f"the draft's context ends at {draft.context_length} tokens, the target's at "
            f"{target.context_length}: beyond that the target goes on alone"
        )
    return tuple(notes)


def _text(fingerprint: Fingerprint, token_id: int) -> bytes:
    return fingerprint.tokens[token_id] if token_id < len(fingerprint.tokens) else b""


def _shown(text: bytes) -> str:
    if not text:
        return "no token"
    return repr(text[:40].decode("utf-8", "backslashreplace"))


def _listed(ids: frozenset[int], names: Fingerprint) -> str:
    first = [f"{token_id} {_shown(_text(names, token_id))}" for token_id in sorted(ids)[:4]]
    more = f" and {len(ids) - 4} more" if len(ids) > 4 else ""
    return ", ".join(first) + more
