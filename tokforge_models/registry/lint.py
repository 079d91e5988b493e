"""Checks over all layers of a registry at once: names that must exist, rules that must be
reachable, entries that may not clash. Pure: layers in, problems added to theirs.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from tokforge_models.bundle import Bundle, Needs, Role
from tokforge_models.reading.fields import Word
from tokforge_models.registry.pairing import Rule
from tokforge_models.registry.schema import Layer, Reference, Refers

# Comparing names is slow: a hostile file has many unknown ones, and many to compare them with.
_MAX_COMPARED = 200


def name_key(name: str) -> str:
    """What makes two names the same: case and punctuation do not count, the dot does.

    >>> name_key("Qwen3.5 4B (MNN)")
    'qwen3.5-4b-mnn'
    """
    return re.sub(r"[^\w.]+|_+", "-", name.casefold()).strip("-.")


def check(layers: Sequence[Layer]) -> None:
    """Add to each layer's problems what only shows beside the other layers.

    Args:
        layers: weakest (the built-in file) first.
    """
    bundles = _check_bundles(layers)
    _check_once(layers, "rule", lambda layer: [word for word, _ in layer.rules])
    _check_once(layers, "statement", lambda layer: [word for word, _ in layer.statements])
    _check_names(layers, bundles)
    known = _known_names(layers, bundles)
    for layer in layers:
        for reference in layer.references:
            _check_reference(layer, reference, known, bundles)
        _check_reachable(layer, bundles)


def _check_bundles(layers: Sequence[Layer]) -> dict[str, Bundle]:
    bundles: dict[str, Bundle] = {}
    for layer in layers:
        for word, bundle in layer.bundles:
            replaces = word.text in layer.replaces
            if word.text in bundles and not replaces:
                where = bundles[word.text].defined_in
                layer.problems.add(
                    word.line, word.key, "a new id, or replace: true", f"one that {where} has"
                )
            elif replaces and word.text not in bundles:
                layer.problems.add(
                    word.line, f"{word.key}.replace", "an id of an earlier layer", repr(word.text)
                )
            bundles[word.text] = bundle
    return bundles


def _check_once(
    layers: Sequence[Layer], noun: str, words_of: Callable[[Layer], list[Word]]
) -> None:
    first: dict[str, str] = {}
    for layer in layers:
        for word in words_of(layer):
            if not word.text:
                continue
            if word.text in first:
                layer.problems.add(
                    word.line,
                    word.key,
                    f"an id that no other {noun} has",
                    f"{word.text!r}, as at {first[word.text]}",
                )
            first.setdefault(word.text, f"{layer.problems.file}:{word.line}")


def _check_names(layers: Sequence[Layer], bundles: Mapping[str, Bundle]) -> None:
    owners = {name_key(name): name for name in bundles}
    for layer in layers:
        for owner, word in layer.aliases:
            key = name_key(word.text)
            if owners.setdefault(key, owner) != owner and owner in bundles:
                layer.problems.add(
                    word.line,
                    word.key,
                    "a name that no other bundle has",
                    f"{word.text!r}, which is {owners[key]}",
                )


def _known_names(layers: Sequence[Layer], bundles: Mapping[str, Bundle]) -> dict[Refers, set[str]]:
    chats = {bundle.id: bundle for bundle in bundles.values() if bundle.role is Role.CHAT}
    return {
        Refers.CHAT: set(chats),
        Refers.DRAFT: bundles.keys() - chats.keys(),
        Refers.BUNDLE: set(bundles),
        Refers.FAMILY: {bundle.family for bundle in chats.values()},
        Refers.STATEMENT: {word.text for layer in layers for word, _ in layer.statements},
    }


def _check_reference(
    layer: Layer,
    reference: Reference,
    known: Mapping[Refers, set[str]],
    bundles: Mapping[str, Bundle],
) -> None:
    word, names = reference.word, known[reference.to]
    if word.text in names:
        return
    got = repr(word.text[:80])
    if reference.to in {Refers.CHAT, Refers.DRAFT} and word.text in bundles:
        got += f", a {bundles[word.text].role} bundle"
    elif len(names) <= _MAX_COMPARED and not layer.problems.full:
        close = difflib.get_close_matches(word.text[:100], sorted(names), n=1)
        got += f" (is {close[0]} meant?)" if close else ""
    layer.problems.add(word.line, word.key, str(reference.to), got)


def _check_reachable(layer: Layer, bundles: Mapping[str, Bundle]) -> None:
    """A later layer may put rules in front of an earlier one's: that is its purpose. Within one
    file a rule that can never decide is a mistake.
    """
    chats = [bundle for bundle in bundles.values() if bundle.role is Role.CHAT]
    targets_of = {id(rule): _targets(rule, chats) for _, rule in layer.rules}
    earlier: list[Rule] = []
    for word, rule in layer.rules:
        left = set(targets_of[id(rule)])
        winners = []
        for other in earlier if left else ():
            taken = left & targets_of[id(other)]
            # A rule also steps aside where its draft's needs are not met.
            if taken and rule.when.imply(other.when) and _asks_no_more(other, rule, bundles):
                winners.append(other.id)
                left -= taken
                if not left:
                    key = word.key.removesuffix(".id")
                    got = f"{', '.join(winners)} always wins"
                    layer.problems.add(rule.line, key, "a rule that can decide", got)
                    break
        earlier.append(rule)


def _targets(rule: Rule, chats: Iterable[Bundle]) -> frozenset[str]:
    if rule.family is None:
        return frozenset(rule.targets)
    return frozenset(bundle.id for bundle in chats if rule.names(bundle))


def _asks_no_more(other: Rule, rule: Rule, bundles: Mapping[str, Bundle]) -> bool:
    """Whether `other`'s draft needs nothing of the device that `rule`'s does not."""
    if other.draft is None or other.draft == rule.draft or other.draft not in bundles:
        return True
    return bundles[other.draft].needs == Needs()
