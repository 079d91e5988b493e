"""Which files MNN will open, as a bundle's own config.json and llm_config.json say.

Read from MNN's source (llmconfig.hpp: names and their defaults; llm.cpp, omni.cpp,
diskembedding.cpp: when each is opened). As there, llm_config.json's values win over config.json's.
MNN crashes on most missing files, so a bundle that lacks one is not let in.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Container
from dataclasses import dataclass, fields
from typing import Any

from tokforge_models.bundle import (
    BACKENDS,
    LEVELS,
    MAX_DYNAMIC_OPTION,
    MAX_THREADS,
    Settings,
)
from tokforge_models.names import fault_in_path

CONFIG = "config.json"
MAX_CONFIG_BYTES = 16 * 1024 * 1024

Config = dict[str, Any]

_GRAPHS_OF_SPECULATION = {
    "mtp": {"mtp_model": "mtp.mnn"},
    "eagle": {
        "eagle_model": "eagle.mnn",
        "eagle_fc": "eagle_fc.mnn",
        "eagle_d2t": "eagle_d2t.mnn",
    },
    "dflash": {
        "dflash_model": "dflash.mnn",
        "dflash_fc": "dflash_fc.mnn",
        "dflash_kvmat": "dflash_kvmat.mnn",
    },
}
_TALKER = {
    "talker_model": "talker.mnn",
    "talker_embedding_file": "talker_embeddings_bf16.bin",
    "spk_dict": "spk_dict.mnn",
    "predit_model": "predit.mnn",
    "dit_model": "dit.mnn",
    "bigvgan_model": "bigvgan.mnn",
}
_QWEN3_TTS = {
    "talker_model": "talker.mnn",
    "talker_weight": "talker.mnn.weight",
    "talker_embedding_file": "talker_embeddings_bf16.bin",
    "talker_text_embedding_file": "talker_text_embeddings_bf16.bin",
    "code_predictor_model": "code_predictor.mnn",
    "code_predictor_weight": "code_predictor.mnn.weight",
    "code_predictor_embedding_file": "code_predictor_embeddings_bf16.bin",
    "codec_embedder_model": "codec_embedder.mnn",
    "codec_embedder_weight": "codec_embedder.mnn.weight",
    "speech_decoder_model": "speech_decoder.mnn",
    "speech_decoder_weight": "speech_decoder.mnn.weight",
    "speaker_encoder_model": "speaker_encoder.mnn",
    "speaker_encoder_weight": "speaker_encoder.mnn.weight",
}


@dataclass(frozen=True, slots=True)
class Needed:
    """What a bundle's configuration asks for.

    Attributes:
        files: paths of the files that must be there, in order.
        problems: why the configuration cannot be followed; empty if it can.
    """

    files: tuple[str, ...]
    problems: tuple[str, ...] = ()


def parse_config(name: str, data: bytes) -> Config | str:
    """Parse a configuration file: its object, or a sentence that says what is wrong with it."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        return f"{name} is not valid JSON: {str(error)[:100]}"
    if not isinstance(value, dict):
        return f"{name} is not a JSON object"
    return value


def named_file(config: Config, key: str, default: str) -> str:
    """Path of the file that a key of a configuration names.

    Raises:
        ValueError: it names none; the message says why.
    """
    name = config.get(key, default)
    if not isinstance(name, str):
        raise ValueError(f"{key} is not text")
    name = _plain(name)
    if fault := fault_in_path(name):
        raise ValueError(f"{key} names {name[:80]!r}, which {fault}")
    return name


def llm_config_name(config: Config) -> str:
    """Path of the second configuration file, which `config` may change; empty if it names none."""
    try:
        return named_file(config, "llm_config", "llm_config.json")
    except ValueError:
        return ""


def merged(config: Config, llm_config: Config) -> Config:
    """Both configuration files as MNN sees them."""
    return {**config, **llm_config}


def asked_files(read: Callable[[str], bytes | str], present: Container[str]) -> Needed:
    """Name every file that MNN will open, from the two configuration files themselves.

    While one of these cannot be followed nobody knows what the others are called, so that only
    the two themselves are named.

    Args:
        read: the bytes of a file, or a sentence that says why they cannot be had.
        present: as in `needed_files`.
    """
    config = _read_config(CONFIG, read)
    if isinstance(config, str):
        return Needed((CONFIG,), (config,))
    name = llm_config_name(config)
    llm_config = _read_config(name, read) if name else {}
    if isinstance(llm_config, str):
        return Needed((CONFIG, name), (llm_config,))
    return needed_files(config, llm_config, present)


def _read_config(name: str, read: Callable[[str], bytes | str]) -> Config | str:
    data = read(name)
    if isinstance(data, str):
        return data
    return parse_config(name, data) if data else f"{name} is empty"


def needed_files(config: Config, llm_config: Config, present: Container[str]) -> Needed:
    """Name every file that MNN will open for this configuration.

    Args:
        config: config.json.
        llm_config: the file that `llm_config_name` names.
        present: paths that are there; some files are opened only where they exist.
    """
    both = merged(config, llm_config)
    asked = _Asked(both)
    asked.files.append(CONFIG)
    asked.name("llm_config", "llm_config.json", config)
    asked.name("llm_model", "llm.mnn")
    asked.name("llm_weight", "llm.mnn.weight")
    asked.name("tokenizer_file", "tokenizer.txt")
    if _reads_embedding_file(both.get("tie_embeddings")):
        asked.name("embedding_file", "embeddings_bf16.bin")
    if "ple_embed_file" in both:
        asked.name("ple_embed_file", "")
    if both.get("is_visual") is True:
        asked.graph("visual_model", "visual.mnn", present, weight=True)
    if both.get("is_audio") is True:
        asked.graph("audio_model", "audio.mnn", present)
    if both.get("has_talker") is True:
        qwen3_tts = "qwen3_tts" in {both.get("talker_type"), both.get("model_type")}
        for key, default in (_QWEN3_TTS if qwen3_tts else _TALKER).items():
            asked.graph(key, default, present)
    for key, default in _graphs_of_speculation(both).items():
        asked.graph(key, default, present)
    asked.optional("context_file", "context.json", present)
    if both.get("speculative_type") == "lookahead":
        asked.optional("lookup_file", "lookup_file.txt", present)
    if "base_dir" in config:
        # Whatever it is: MNN puts it before names, an empty one too. It looks for it here alone.
        asked.problems.append("config.json sets base_dir, which sends MNN to another folder")
    return Needed(tuple(dict.fromkeys(asked.files)), tuple(asked.problems))


class _Asked:
    """Collects names of files, and what is wrong with names."""

    def __init__(self, merged: Config) -> None:
        self._merged = merged
        self.files: list[str] = []
        self.problems: list[str] = []

    def name(self, key: str, default: str, config: Config | None = None) -> str:
        try:
            name = named_file(self._merged if config is None else config, key, default)
        except ValueError as problem:
            self.problems.append(str(problem))
            return ""
        self.files.append(name)
        return name

    def optional(self, key: str, default: str, present: Container[str]) -> None:
        """A file that MNN does without."""
        name = self._merged.get(key, default)
        if isinstance(name, str) and _plain(name) in present:
            self.files.append(_plain(name))

    def graph(
        self, key: str, default: str, present: Container[str], *, weight: bool = False
    ) -> None:
        """A graph, and the weights beside it: always, or where they exist."""
        name = self.name(key, default)
        if name and (weight or f"{name}.weight" in present):
            self.files.append(f"{name}.weight")


def _plain(name: str) -> str:
    return name.removeprefix("./")


def _reads_embedding_file(tie: Any) -> bool:
    """Embeddings lie in the weights only where `tie_embeddings` says at which offset."""
    if isinstance(tie, dict):
        return not tie.get("weight_offset")
    if isinstance(tie, list) and len(tie) >= 5:
        return not tie[0]
    return True


def _graphs_of_speculation(merged: Config) -> dict[str, str]:
    kind = merged.get("speculative_type")
    return _GRAPHS_OF_SPECULATION.get(kind, {}) if isinstance(kind, str) else {}


_SETTING_KEYS = {
    "backend": "backend_type",
    "threads": "thread_num",
    "precision": "precision",
    "memory": "memory",
    "power": "power",
    "sampler": "sampler_type",
    "dynamic_option": "dynamic_option",
}


_NUMBERS = {"threads", "dynamic_option"}
_KNOWN: dict[str, Container[object]] = {
    "backend": BACKENDS,
    "threads": range(1, MAX_THREADS + 1),
    "precision": LEVELS,
    "memory": LEVELS,
    "power": LEVELS,
    "dynamic_option": range(MAX_DYNAMIC_OPTION + 1),
}


def settings_of(config: Config) -> tuple[Settings, tuple[str, ...]]:
    """The runtime settings in a config.json, and what is wrong with the others.

    A value that only MNN knows (backend ``npu``, the 68 "threads" of OpenCL) is neither: it is left
    to MNN, which reads that file, too.
    """
    values: dict[str, Any] = {}
    problems = []
    for field in fields(Settings):
        key = _SETTING_KEYS[field.name]
        value = config.get(key)
        wanted = int if field.name in _NUMBERS else str
        if value is None:
            continue
        if type(value) is wanted:
            if value in _KNOWN.get(field.name, (value,)):
                values[field.name] = value
        else:
            noun = "a whole number" if wanted is int else "text"
            problems.append(f"{CONFIG}: {key} is not {noun}")
    return Settings(**values), tuple(problems)
