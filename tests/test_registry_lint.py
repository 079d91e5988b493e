"""Bad registries: each fault with file, line, key, expected and got; all faults in one run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from tokforge_models.errors import RegistryError
from tokforge_models.reading.strict_yaml import MAX_BYTES
from tokforge_models.registry.lint import name_key
from tokforge_models.registry.registry import Registry, lint
from tokforge_models.registry.schema import MAX_RULES

ANY = "anything"
BUNDLE = """\
schema: 1
bundles:
  mine:
    name: Mine
    role: chat
    family: mine
"""
PAIR = (
    BUNDLE
    + """\
  helper:
    name: Helper
    role: draft
    family: mine
pairings:
  - id: first
    targets: [mine]
    use: helper
    reason: so it is
"""
)


@dataclass(frozen=True)
class Bad:
    """A registry and the one fault in it."""

    name: str
    text: str
    line: int
    key: str
    expected: str
    got: str


def bundle(extra: str) -> str:
    return BUNDLE + "".join(f"    {line}\n" for line in extra.splitlines())


def rule(text: str) -> str:
    lines = text.splitlines()
    return PAIR + f"  - {lines[0]}\n" + "".join(f"    {line}\n" for line in lines[1:])


BAD = [
    Bad("empty", "", 1, "", "a document", "an empty file"),
    Bad("a list", "- 1\n", 1, "", "a mapping", "a list of 1"),
    Bad("no schema", "bundles: {}\n", 1, "schema", "the number 1", "nothing"),
    Bad("another schema", "schema: 2\n", 1, "schema", "a whole number from 1 to 1", "the number 2"),
    Bad("schema as text", "schema: '1'\n", 1, "schema", "a whole number from 1 to 1", "'1'"),
    Bad(
        "duplicate key", BUNDLE + "    role: chat\n", 7, "bundles.mine.role", "each key once",
        "again, after line 5",
    ),
    Bad(
        "duplicate bundle", BUNDLE + "  mine: {}\n", 7, "bundles.mine", "each key once",
        "again, after line 3",
    ),
    Bad(
        "unknown top key", "schema: 1\nbundels: {}\n", 2, "bundels",
        "a known key (bundles perhaps)", "an unknown one",
    ),
    Bad(
        "unknown bundle key", bundle("licence: MIT"), 7, "bundles.mine.licence",
        "a known key (license perhaps)", "an unknown one",
    ),
    Bad("bundles is a list", "schema: 1\nbundles: [a]\n", 2, "bundles", "a mapping", "a list of 1"),
    Bad(
        "a bundle is a text", "schema: 1\nbundles:\n  mine: x\n", 3, "bundles.mine", "a mapping",
        "'x'",
    ),
    Bad(
        "no role", "schema: 1\nbundles:\n  mine: {name: Mine, family: m}\n", 3, "bundles.mine.role",
        "chat or draft", "nothing",
    ),
    Bad(
        "unknown role", BUNDLE.replace("chat", "helper"), 5, "bundles.mine.role",
        "one of chat, draft", "'helper'",
    ),
    Bad(
        "no name", "schema: 1\nbundles:\n  mine: {role: chat, family: m}\n", 3, "bundles.mine.name",
        "a text", "nothing",
    ),
    Bad(
        "no family", "schema: 1\nbundles:\n  mine: {role: chat, name: M}\n", 3,
        "bundles.mine.family", "a text", "nothing",
    ),
    Bad(
        "an id that escapes", BUNDLE.replace("  mine:", "  ../mine:"), 3, "bundles.../mine",
        "an id (lower-case letters, digits, '.', '_', '-')", "'../mine'",
    ),
    Bad(
        "an id in capitals", BUNDLE.replace("  mine:", "  Mine:"), 3, "bundles.Mine",
        "an id (lower-case letters, digits, '.', '_', '-')", "'Mine'",
    ),
    Bad(
        "a reserved id", BUNDLE.replace("  mine:", "  none:"), 3, "bundles.none",
        "an id that is not a word of the command line", "'none'",
    ),
    Bad(
        "an id of Windows", BUNDLE.replace("  mine:", "  nul:"), 3, "bundles.nul",
        "an id (lower-case letters, digits, '.', '_', '-')", "'nul'",
    ),
    Bad(
        "license no is a text", bundle("license: 2"), 7, "bundles.mine.license",
        "a text (in quotes, if this is meant)", "the number 2",
    ),
    Bad(
        "revision as number", bundle("revision: 1234567"), 7, "bundles.mine.revision",
        "a text (in quotes, if this is meant)", "the number 1234567",
    ),
    Bad(
        "revision escapes", bundle("revision: a/../b"), 7, "bundles.mine.revision",
        "a commit or label that can be a folder's name", "'a/../b'",
    ),
    Bad(
        "unknown source", bundle("sources: ['ftp:x']"), 7, "bundles.mine.sources.0",
        "hf:, modelscope:, url:, path: or package:, and a location", "'ftp:x'",
    ),
    Bad(
        "source without owner", bundle("sources: ['hf:x']"), 7, "bundles.mine.sources.0",
        "hf:owner/name", "'hf:x'",
    ),
    Bad(
        "source escapes", bundle("sources: ['package:../x']"), 7, "bundles.mine.sources.0",
        "package: and the name of a folder in this package", "'package:../x'",
    ),
    Bad(
        "source with bad commit", bundle("sources: ['hf:a/b@..']"), 7, "bundles.mine.sources.0",
        "a revision that can be a folder's name after the @", "'hf:a/b@..'",
    ),
    Bad(
        "source with a password", bundle("sources: ['url:https://u:p@h/x']"), 7,
        "bundles.mine.sources.0", "url:http(s)://host/path without user, password or query",
        "'url:https://u:p@h/x'",
    ),
    Bad(
        "source twice", bundle("sources: ['hf:a/b', 'hf:a/b']"), 7, "bundles.mine.sources.1",
        "each value once", "'hf:a/b' again",
    ),
    Bad(
        "a path that escapes", bundle("files:\n- path: ../x"), 8, "bundles.mine.files.0.path",
        "a safe relative path (this one climbs out of its folder)", "'../x'",
    ),
    Bad(
        "an absolute path", bundle("files:\n- path: /etc/passwd"), 8, "bundles.mine.files.0.path",
        "a safe relative path (this one is absolute)", "'/etc/passwd'",
    ),
    Bad(
        "paths that differ in case", bundle("files:\n- path: a\n- path: A"), 7,
        "bundles.mine.files", "files that can live in one folder everywhere",
        "'A' and 'a' are the same name where case does not count",
    ),
    Bad(
        "a file without path", bundle("files:\n- size: 1"), 8, "bundles.mine.files.0.path",
        "a text", "nothing",
    ),
    Bad(
        "a negative size", bundle("files:\n- {path: a, size: -1}"), 8, "bundles.mine.files.0.size",
        f"a whole number from 0 to {1 << 50}", "the number -1",
    ),
    Bad(
        "a size as text", bundle("files:\n- {path: a, size: 5 MB}"), 8, "bundles.mine.files.0.size",
        f"a whole number from 0 to {1 << 50}", "'5 MB'",
    ),
    Bad(
        "a short digest", bundle("files:\n- {path: a, sha256: abc}"), 8,
        "bundles.mine.files.0.sha256", "64 lower-case hexadecimal digits", "'abc'",
    ),
    Bad(
        "an approximate pin", bundle("files:\n- {path: a, about: lots}"), 8,
        "bundles.mine.files.0.about", "a size like 504 KB or 1.61 MB", "'lots'",
    ),
    Bad(
        "both sizes", bundle("files:\n- {path: a, about: 1 KB, size: 999}"), 8,
        "bundles.mine.files.0.about", "no approximate size beside an exact one", "both",
    ),
    Bad(
        "unknown file role", bundle("files:\n- {path: a, role: maybe}"), 8,
        "bundles.mine.files.0.role", "one of required, reference", "'maybe'",
    ),
    Bad(
        "unknown platform", bundle("needs: {platforms: [amiga]}"), 7,
        "bundles.mine.needs.platforms.0", "one of android, ios, linux, macos, windows", "'amiga'",
    ),
    Bad(
        "RAM as text", bundle("needs: {min_ram_gb: 4 GB}"), 7, "bundles.mine.needs.min_ram_gb",
        "a number from 0 to 4096", "'4 GB'",
    ),
    Bad(
        "unknown backend", bundle("settings: {backend: gpu}"), 7, "bundles.mine.settings.backend",
        "one of cpu, opencl, vulkan, metal, cuda, hexagon", "'gpu'",
    ),
    Bad(
        "no threads", bundle("settings: {threads: 0}"), 7, "bundles.mine.settings.threads",
        "a whole number from 1 to 64", "the number 0",
    ),
    Bad(
        "d out of range", bundle("d: 16"), 7, "bundles.mine.d", "a whole number from 1 to 15",
        "the number 16",
    ),
    Bad(
        "replace as text", bundle("replace: yes"), 7, "bundles.mine.replace", "true or false",
        "'yes'",
    ),
    Bad(
        "nothing to replace", bundle("replace: true"), 3, "bundles.mine.replace",
        "an id of an earlier layer", "'mine'",
    ),
    Bad(
        "an id that is taken", BUNDLE.replace("  mine:", "  qwen3-4b:"), 3, "bundles.qwen3-4b",
        "a new id, or replace: true", ANY,
    ),
    Bad(
        "a name that is taken", bundle("aliases: [Qwen3 8B]"), 7, "bundles.mine.aliases.0",
        "a name that no other bundle has", "'Qwen3 8B', which is qwen3-8b",
    ),
    Bad(
        "unknown pins", bundle("pins_from: hearsay"), 7, "bundles.mine.pins_from",
        "the id of a statement", "'hearsay'",
    ),
    Bad(
        "a statement without place", "schema: 1\nstatements:\n  s: {title: T}\n", 3,
        "statements.s.where", "a text", "nothing",
    ),
    Bad(
        "rules as mapping", "schema: 1\npairings: {}\n", 2, "pairings", "a list of mappings",
        "a mapping",
    ),
    Bad(
        "a rule without id", rule("targets: [qwen3-8b]\nuse: none\nreason: r"), 16, "pairings.1.id",
        "a name that no other rule has", "nothing",
    ),
    Bad(
        "a rule without reason", rule("id: x\ntargets: [qwen3-8b]\nuse: none"), 16,
        "pairings.1.reason", "a text", "nothing",
    ),
    Bad(
        "a rule without use", rule("id: x\ntargets: [qwen3-8b]\nreason: r"), 16, "pairings.1.use",
        "the id of a draft bundle, none or off", "nothing",
    ),
    Bad(
        "a rule without targets", rule("id: x\nuse: none\nreason: r"), 16, "pairings.1",
        "either targets or family", "neither",
    ),
    Bad(
        "targets and family",
        rule("id: x\ntargets: [qwen3-8b]\nfamily: qwen3\nuse: none\nreason: r"), 16, "pairings.1",
        "either targets or family", "both",
    ),
    Bad(
        "no targets", rule("id: x\ntargets: []\nuse: none\nreason: r"), 17, "pairings.1.targets",
        "at least one target", "none",
    ),
    Bad(
        "an unknown target", rule("id: x\ntargets: [qwen3-8x]\nuse: none\nreason: r"), 17,
        "pairings.1.targets.0", "the id of a chat bundle", "'qwen3-8x' (is qwen3-8b meant?)",
    ),
    Bad(
        "a draft as target", rule("id: x\ntargets: [demo-draft]\nuse: none\nreason: r"), 17,
        "pairings.1.targets.0", "the id of a chat bundle", "'demo-draft', a draft bundle",
    ),
    Bad(
        "an unknown draft", rule("id: x\ntargets: [qwen3-8b]\nuse: demo-daft\nreason: r"), 18,
        "pairings.1.use", "the id of a draft bundle, none or off",
        "'demo-daft' (is demo-draft meant?)",
    ),
    Bad(
        "a chat model as draft", rule("id: x\ntargets: [qwen3-8b]\nuse: qwen3-0.6b\nreason: r"), 18,
        "pairings.1.use", "the id of a draft bundle, none or off", "'qwen3-0.6b', a chat bundle",
    ),
    Bad(
        "use: false", rule("id: x\ntargets: [qwen3-8b]\nuse: false\nreason: r"), 18,
        "pairings.1.use", "a text (in quotes, if this is meant)", "false",
    ),
    Bad(
        "an unknown family", rule("id: x\nfamily: llama\nuse: none\nreason: r"), 17,
        "pairings.1.family", "a family that a chat bundle has", "'llama'",
    ),
    Bad(
        "an unknown condition",
        rule("id: x\ntargets: [qwen3-8b]\nuse: none\nreason: r\nif_instaled: []"), 20,
        "pairings.1.if_instaled", "a known key (if_installed perhaps)", ANY,
    ),
    Bad(
        "an unknown bundle installed",
        rule("id: x\ntargets: [qwen3-8b]\nuse: none\nreason: r\nif_installed: [zzz]"), 20,
        "pairings.1.if_installed.0", "the id of a bundle", "'zzz'",
    ),
    Bad(
        "measured without draft",
        rule("id: x\ntargets: [qwen3-8b]\nuse: none\nreason: r\nif_measured_faster: true"), 20,
        "pairings.1.if_measured_faster", "no such key beside use: none", "one",
    ),
    Bad(
        "an unknown statement",
        rule("id: x\ntargets: [qwen3-8b]\nuse: none\nreason: r\nfrom: hearsay"), 20,
        "pairings.1.from", "the id of a statement", "'hearsay'",
    ),
    Bad(
        "a disagreement with nobody",
        rule("id: x\ntargets: [qwen3-8b]\nuse: none\nreason: r\ndisagrees: [{says: no}]"), 20,
        "pairings.1.disagrees.0.from", "the id of a statement", "nothing",
    ),
    Bad(
        "a rule id twice", rule("id: first\ntargets: [qwen3-8b]\nuse: none\nreason: r"), 16,
        "pairings.1.id", "an id that no other rule has", ANY,
    ),
    Bad(
        "a built-in rule's id", rule("id: qwen3-8b\ntargets: [qwen3-8b]\nuse: none\nreason: r"), 16,
        "pairings.1.id", "an id that no other rule has", ANY,
    ),
    Bad(
        "an unreachable rule", rule("id: x\ntargets: [mine]\nuse: none\nreason: r"), 16,
        "pairings.1", "a rule that can decide", "first always wins",
    ),
    Bad(
        "unreachable by condition",
        rule("id: x\ntargets: [mine]\nuse: off\nreason: r\nplatforms: [linux]"), 16, "pairings.1",
        "a rule that can decide", "first always wins",
    ),
    Bad(
        "unreachable by family", rule("id: x\nfamily: mine\nuse: off\nreason: r"), 16, "pairings.1",
        "a rule that can decide", "first always wins",
    ),
    Bad("not UTF-8", "schema: 1\n# \udcff\n", 2, "", "UTF-8 text", "the byte 0xff"),
    Bad("an anchor", "schema: 1\nbundles: &b {}\n", 2, "bundles", "no anchors", "&b"),
    Bad(
        "a tag", "schema: 1\nbundles: !!map {}\n", 2, "bundles", "no tags",
        "'tag:yaml.org,2002:map'",
    ),
    Bad("not YAML", "schema: 1\nbundles: {\n", 3, "bundles", "YAML that can be parsed", ANY),
    Bad(
        "deeply nested", "schema: 1\nbundles: " + "[" * 99 + "]" * 99, 2, "bundles" + ".0" * 15,
        "at most 16 levels", "more",
    ),
    Bad("huge", "schema: 1\n#" + "x" * 2_000_000, 1, "", f"at most {MAX_BYTES} bytes", "more"),
]  # fmt: skip


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad.name)
def test_bad_registry(bad: Bad, tmp_path: Path) -> None:
    path = tmp_path / "registry.yaml"
    path.write_bytes(bad.text.encode("utf-8", "surrogateescape"))
    [problem] = lint(path)
    assert (problem.file, problem.line, problem.key, problem.expected) == (
        str(path),
        bad.line,
        bad.key,
        bad.expected,
    )
    # Where "got" holds a path or a parser's words, only that it is there is fixed.
    assert problem.got == (bad.got if bad.got != ANY else problem.got) != ""


def test_there_are_enough_bad_registries() -> None:
    assert len({bad.name for bad in BAD}) == len(BAD) >= 40


def test_more_rules_than_anybody_reviews(tmp_path: Path) -> None:
    path = tmp_path / "registry.yaml"
    rules = "".join(
        f"  - {{id: r{i}, targets: [mine], use: off, reason: r, chips: [c{i}]}}\n"
        for i in range(MAX_RULES + 1)
    )
    path.write_text(BUNDLE + "pairings:\n" + rules)
    assert [(p.key, p.expected, p.got) for p in lint(path)] == [
        ("pairings", f"at most {MAX_RULES} rules", f"{MAX_RULES + 1}")
    ]


def test_aliases_are_refused_however_they_are_used(tmp_path: Path) -> None:
    path = tmp_path / "registry.yaml"
    path.write_text("schema: 1\nbundles: &b\n  mine: *b\n")
    assert [(p.line, p.expected, p.got) for p in lint(path)] == [
        (2, "no anchors", "&b"),
        (3, "the value itself", "the alias *b"),
        (3, "a mapping", "nothing"),
    ]


def test_all_problems_of_all_layers_in_one_run(tmp_path: Path) -> None:
    one, two = tmp_path / "one.yaml", tmp_path / "two.yaml"
    one.write_text(bundle("d: 0\nlicence: x\nrevision: 7"))
    two.write_text("schema: 3\npairings:\n  - {id: r, targets: [qwen], use: off, reason: r}\n")
    with pytest.raises(RegistryError) as caught:
        Registry.load([one, two], config_dir=tmp_path)
    assert [(Path(p.file).name, p.line, p.key) for p in caught.value.problems] == [
        ("one.yaml", 7, "bundles.mine.d"),
        ("one.yaml", 8, "bundles.mine.licence"),
        ("one.yaml", 9, "bundles.mine.revision"),
        ("two.yaml", 1, "schema"),
        ("two.yaml", 3, "pairings.0.targets.0"),
    ]
    assert caught.value.exit_code == 7
    assert f"{one}:7: bundles.mine.d: expected a whole number" in caught.value.message


def test_a_good_layer_has_no_problems(tmp_path: Path) -> None:
    path = tmp_path / "registry.yaml"
    path.write_text(PAIR)
    assert lint(path) == ()


def test_a_rule_behind_one_with_needs_is_reached_where_they_are_not_met(tmp_path: Path) -> None:
    path = tmp_path / "registry.yaml"
    path.write_text(
        "schema: 1\npairings:\n"
        "  - {id: x, targets: [qwen3-8b], use: acceleration-pack-qwen3-0.6b, reason: r}\n"
        "  - {id: y, targets: [qwen3-8b], use: off, reason: r}\n"
    )
    assert lint(path) == ()


def test_another_draft_without_needs_always_wins(tmp_path: Path) -> None:
    path = tmp_path / "registry.yaml"
    path.write_text(rule("id: x\ntargets: [mine]\nuse: demo-draft\nreason: r"))
    [problem] = lint(path)
    assert (problem.line, problem.got) == (16, "first always wins")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    assert [problem.got for problem in lint(tmp_path / "none.yaml")] == ["no such file"]


def test_a_rule_that_is_left_one_of_its_targets_is_reachable(tmp_path: Path) -> None:
    path = tmp_path / "registry.yaml"
    path.write_text(rule("id: x\ntargets: [mine, qwen3-8b]\nuse: none\nreason: r"))
    assert lint(path) == ()


def test_a_user_may_put_a_rule_in_front_of_the_builtin_ones(tmp_path: Path) -> None:
    path = tmp_path / "registry.yaml"
    path.write_text("schema: 1\npairings:\n  - {id: r, family: qwen3, use: off, reason: heat}\n")
    assert lint(path) == ()


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("Qwen3 8B (MNN)", "qwen3-8b-mnn"),
        ("Qwen3-8B-MNN", "qwen3-8b-mnn"),
        ("  qwen3_8b__mnn ", "qwen3-8b-mnn"),
        ("Qwen3.5 4B", "qwen3.5-4b"),
        ("taobao-mnn/Qwen3-8B-MNN", "taobao-mnn-qwen3-8b-mnn"),
    ],
)
def test_name_key(name: str, key: str) -> None:
    assert name_key(name) == key
