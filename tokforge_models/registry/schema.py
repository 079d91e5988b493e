"""What may stand in a registry file: fields read into `Bundle`, `Rule` and `Statement`.

The whole schema is in this module, top down. It looks at one file alone; names that point to
other entries are returned as `references` and checked by `tokforge_models.registry.lint`, once
all layers are known.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from tokforge_models.bundle import (
    BACKENDS,
    LEVELS,
    MAX_D,
    MAX_DYNAMIC_OPTION,
    MAX_THREADS,
    Bundle,
    BundleFile,
    FileRole,
    Needs,
    Role,
    Settings,
    Source,
)
from tokforge_models.device import Platform
from tokforge_models.names import fault_in_path, fault_in_paths, is_bundle_id, is_revision
from tokforge_models.reading.fields import Fields, Word, one_of
from tokforge_models.reading.strict_yaml import Problems, read_file
from tokforge_models.registry.pairing import Conditions, Disagreement, Rule, Statement

SCHEMA = 1
# More could not be reviewed, and checking them against each other takes the square of the time.
MAX_RULES = 500
# Words that a command takes where a draft's id may stand.
RESERVED_IDS = frozenset({"auto", "lookup", "none", "off"})

_DIGEST = re.compile(r"[0-9a-f]{64}")
_ABOUT = re.compile(r"([0-9]{1,4}(?:\.[0-9]{1,3})?) (B|KB|MB|GB)")
_UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9}
_PLATFORM = one_of([str(platform) for platform in Platform])


class Refers(StrEnum):
    """What a name in a registry points to."""

    CHAT = "the id of a chat bundle"
    DRAFT = "the id of a draft bundle, none or off"
    BUNDLE = "the id of a bundle"
    FAMILY = "a family that a chat bundle has"
    STATEMENT = "the id of a statement"


@dataclass(frozen=True, slots=True)
class Reference:
    """A name that must exist somewhere in the layers."""

    to: Refers
    word: Word


@dataclass(frozen=True, slots=True)
class Layer:
    """One registry file, read on its own.

    Attributes:
        problems: what is wrong so far.
        bundles: entries with the place of their ids.
        aliases: every further name of a bundle (alias or display name), by bundle id.
        replaces: ids that say ``replace: true``.
    """

    problems: Problems
    bundles: tuple[tuple[Word, Bundle], ...] = ()
    aliases: tuple[tuple[str, Word], ...] = ()
    replaces: frozenset[str] = frozenset()
    rules: tuple[tuple[Word, Rule], ...] = ()
    statements: tuple[tuple[Word, Statement], ...] = ()
    references: tuple[Reference, ...] = ()


def read_layer(path: Path) -> Layer:
    """Read one registry file. Never raises for its content: see the layer's `problems`."""
    return _Reader(path).read()


class _Reader:
    def __init__(self, path: Path) -> None:
        self._folder = path.parent
        self._problems = Problems(str(path))
        self._path = path
        self._references: list[Reference] = []
        self._aliases: list[tuple[str, Word]] = []
        self._replaces: set[str] = set()

    def read(self) -> Layer:
        root = Fields.of(read_file(self._path, self._problems), "", self._problems)
        if root is None:
            return Layer(self._problems)
        root.require("schema", f"the number {SCHEMA}")
        root.integer("schema", SCHEMA, SCHEMA)
        statements = [
            (word, self._statement(word.text, fields))
            for word, fields in root.named_mappings("statements", _id_check)
        ]
        bundles = [
            (word, self._bundle(word.text, fields))
            for word, fields in root.named_mappings("bundles", _bundle_id_check)
        ]
        entries = root.mappings("pairings")
        if len(entries) > MAX_RULES:
            root.wrong("pairings", f"at most {MAX_RULES} rules", f"{len(entries)}")
        rules = [self._rule(fields) for fields in entries[:MAX_RULES]]
        root.done()
        return Layer(
            problems=self._problems,
            bundles=tuple(bundles),
            aliases=tuple(self._aliases),
            replaces=frozenset(self._replaces),
            rules=tuple(rules),
            statements=tuple(statements),
            references=tuple(self._references),
        )

    def _statement(self, name: str, fields: Fields) -> Statement:
        statement = Statement(
            id=name,
            title=fields.required_text("title"),
            where=fields.required_text("where"),
            date=fields.text("date"),
        )
        fields.done()
        return statement

    def _bundle(self, name: str, fields: Fields) -> Bundle:
        fields.require("role", "chat or draft")
        display = fields.word("name")
        fields.require("name", "a text")
        aliases = fields.words("aliases") or ()
        self._aliases += [(name, word) for word in (*aliases, display) if word]
        if fields.flag("replace"):
            self._replaces.add(name)
        bundle = Bundle(
            id=name,
            name=display.text if display else name,
            role=fields.choice("role", Role) or Role.CHAT,
            family=fields.required_text("family"),
            aliases=tuple(word.text for word in aliases),
            base_model=fields.text("base_model"),
            license=fields.text("license"),
            sources=self._sources(fields),
            revision=fields.text("revision", _revision_check),
            files=self._files(fields),
            needs=self._needs(fields.mapping("needs")),
            published_for=fields.texts("published_for", _PLATFORM),
            context_length=fields.integer("context_length", 1, 1 << 30),
            settings=read_settings(fields.mapping("settings")),
            d=fields.integer("d", 1, MAX_D),
            pins_from=self._refer(fields.word("pins_from"), Refers.STATEMENT),
            defined_in=str(self._path),
        )
        fields.done()
        return bundle

    def _sources(self, fields: Fields) -> tuple[Source, ...]:
        words = fields.words("sources", _source_fault) or ()
        return tuple(self._source(word.text) for word in words)

    def _source(self, text: str) -> Source:
        source = Source.parse(text)
        if source.kind == "path":
            # What a layer file calls relative is relative to itself, wherever we run.
            return Source("path", str(self._folder.absolute() / source.location))
        return source

    def _files(self, fields: Fields) -> tuple[BundleFile, ...]:
        files = tuple(self._file(entry) for entry in fields.mappings("files"))
        paths = [file.path for file in files if fault_in_path(file.path) is None]
        if fault := fault_in_paths(paths):
            fields.wrong("files", "files that can live in one folder everywhere", fault)
        return files

    def _file(self, fields: Fields) -> BundleFile:
        file = BundleFile(
            path=fields.required_text("path", _path_check),
            role=fields.choice("role", FileRole) or FileRole.REQUIRED,
            size=fields.integer("size", 0, 1 << 50),
            sha256=fields.text("sha256", _digest_check),
            about_bytes=_about_bytes(fields.text("about", _about_check)),
        )
        if fields.has("size") and fields.has("about"):
            fields.wrong("about", "no approximate size beside an exact one", "both")
        fields.done()
        return file

    def _needs(self, fields: Fields | None) -> Needs:
        if fields is None:
            return Needs()
        needs = Needs(
            platforms=fields.texts("platforms", _PLATFORM),
            min_ram_gb=fields.number("min_ram_gb", 0, 4096),
        )
        fields.done()
        return needs

    def _rule(self, fields: Fields) -> tuple[Word, Rule]:
        fields.require("id", "a name that no other rule has")
        fields.require("use", "the id of a draft bundle, none or off")
        name = fields.word("id", _id_check)
        family = fields.word("family")
        targets = fields.words("targets") or ()
        if fields.has("family") == fields.has("targets"):
            got = "both" if fields.has("family") else "neither"
            fields.problems.add(fields.line, fields.key, "either targets or family", got)
        elif not targets and isinstance(fields.items("targets", ""), tuple):
            fields.wrong("targets", "at least one target", "none")
        use = fields.word("use")
        draft = use if use and use.text not in {"none", "off"} else None
        for target in targets:
            self._refer(target, Refers.CHAT)
        rule = Rule(
            id=name.text if name else "",
            targets=tuple(word.text for word in targets),
            family=self._refer(family, Refers.FAMILY),
            draft=self._refer(draft, Refers.DRAFT),
            lookup=use is None or use.text != "off",
            when=self._conditions(fields),
            target_settings=read_settings(fields.mapping("target_settings")),
            reason=fields.required_text("reason"),
            statement=self._refer(fields.word("from"), Refers.STATEMENT),
            disagrees=tuple(self._disagreement(entry) for entry in fields.mappings("disagrees")),
            defined_in=str(self._path),
            line=fields.line,
        )
        if use and draft is None:
            for key in ("if_measured_faster", "target_settings"):
                if fields.has(key):
                    fields.wrong(key, f"no such key beside use: {use.text}", "one")
        fields.done()
        return name or Word("", fields.line, fields.path("id")), rule

    def _conditions(self, fields: Fields) -> Conditions:
        installed = fields.words("if_installed") or ()
        for word in installed:
            self._refer(word, Refers.BUNDLE)
        return Conditions(
            if_installed=tuple(word.text for word in installed),
            chips=fields.texts("chips"),
            platforms=fields.texts("platforms", _PLATFORM),
            if_measured_faster=fields.flag("if_measured_faster"),
        )

    def _disagreement(self, fields: Fields) -> Disagreement:
        fields.require("from", "the id of a statement")
        disagreement = Disagreement(
            statement=self._refer(fields.word("from"), Refers.STATEMENT) or "",
            says=fields.required_text("says"),
        )
        fields.done()
        return disagreement

    def _refer(self, word: Word | None, to: Refers) -> str | None:
        if word is None:
            return None
        self._references.append(Reference(to, word))
        return word.text


def read_settings(fields: Fields | None) -> Settings:
    """Runtime settings of one model, as registries and saved profiles write them."""
    if fields is None:
        return Settings()
    settings = Settings(
        backend=fields.text("backend", one_of(BACKENDS)),
        threads=fields.integer("threads", 1, MAX_THREADS),
        precision=fields.text("precision", one_of(LEVELS)),
        memory=fields.text("memory", one_of(LEVELS)),
        power=fields.text("power", one_of(LEVELS)),
        sampler=fields.text("sampler"),
        dynamic_option=fields.integer("dynamic_option", 0, MAX_DYNAMIC_OPTION),
    )
    fields.done()
    return settings


def _source_fault(text: str) -> str | None:
    try:
        Source.parse(text)
    except ValueError as error:
        return str(error)
    return None


def _id_check(text: str) -> str | None:
    return None if is_bundle_id(text) else "an id (lower-case letters, digits, '.', '_', '-')"


def _bundle_id_check(text: str) -> str | None:
    return (
        "an id that is not a word of the command line" if text in RESERVED_IDS else _id_check(text)
    )


def _revision_check(text: str) -> str | None:
    return None if is_revision(text) else "a commit or label that can be a folder's name"


def _path_check(text: str) -> str | None:
    fault = fault_in_path(text)
    return f"a safe relative path (this one {fault})" if fault else None


def _digest_check(text: str) -> str | None:
    return None if _DIGEST.fullmatch(text) else "64 lower-case hexadecimal digits"


def _about_check(text: str) -> str | None:
    return None if _ABOUT.fullmatch(text) else "a size like 504 KB or 1.61 MB"


def _about_bytes(text: str | None) -> int | None:
    match = _ABOUT.fullmatch(text or "")
    return round(float(match[1]) * _UNITS[match[2]]) if match else None
