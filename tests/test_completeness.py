"""What each configuration asks for, as MNN reads it."""

from __future__ import annotations

from typing import Any

import pytest

from tokforge_models.bundle import Settings
from tokforge_models.model_files.completeness import (
    llm_config_name,
    needed_files,
    parse_config,
    settings_of,
)

PLAIN = ["config.json", "llm_config.json", "llm.mnn", "llm.mnn.weight", "tokenizer.txt"]
TIED = {"tie_embeddings": [10, 20, 16, 4, 128]}


@pytest.mark.parametrize(
    ("config", "llm_config", "present", "files"),
    [
        ({}, TIED, [], PLAIN),
        ({}, {"tie_embeddings": {"weight_offset": 9}}, [], PLAIN),
        ({}, {}, [], [*PLAIN, "embeddings_bf16.bin"]),
        ({}, {"tie_embeddings": [10, 20, 16, 4]}, [], [*PLAIN, "embeddings_bf16.bin"]),
        (
            {"embedding_file": "embeddings_int4.bin"},
            {"tie_embeddings": [0, 20, 16, 4, 128]},
            [],
            [*PLAIN, "embeddings_int4.bin"],
        ),
        (
            {"llm_model": "./m.mnn", "llm_weight": "m.mnn.weight", "tokenizer_file": "t.mtok"},
            TIED,
            [],
            ["config.json", "llm_config.json", "m.mnn", "m.mnn.weight", "t.mtok"],
        ),
        (
            {"tokenizer_file": "old.txt"},
            {**TIED, "tokenizer_file": "new.mtok"},
            [],
            [*PLAIN[:4], "new.mtok"],
        ),
        ({"llm_config": "l.json"}, TIED, [], ["config.json", "l.json", *PLAIN[2:]]),
        ({}, {**TIED, "is_visual": True}, [], [*PLAIN, "visual.mnn", "visual.mnn.weight"]),
        ({}, {**TIED, "is_visual": False}, [], PLAIN),
        (
            {"visual_model": "eye.mnn"},
            {**TIED, "is_visual": True},
            [],
            [*PLAIN, "eye.mnn", "eye.mnn.weight"],
        ),
        ({}, {**TIED, "is_audio": True}, [], [*PLAIN, "audio.mnn"]),
        (
            {},
            {**TIED, "is_audio": True},
            ["audio.mnn.weight"],
            [*PLAIN, "audio.mnn", "audio.mnn.weight"],
        ),
        ({}, {**TIED, "ple_embed_file": "ple.bin"}, [], [*PLAIN, "ple.bin"]),
        ({"speculative_type": "mtp"}, TIED, [], [*PLAIN, "mtp.mnn"]),
        (
            {"speculative_type": "eagle"},
            TIED,
            [],
            [*PLAIN, "eagle.mnn", "eagle_fc.mnn", "eagle_d2t.mnn"],
        ),
        ({"speculative_type": "lookahead"}, TIED, [], PLAIN),
        ({"speculative_type": ["mtp"]}, TIED, [], PLAIN),
        (
            {"speculative_type": "lookahead"},
            TIED,
            ["lookup_file.txt"],
            [*PLAIN, "lookup_file.txt"],
        ),
        ({}, TIED, ["context.json"], [*PLAIN, "context.json"]),
        ({"context_file": ["x"]}, TIED, ["context.json"], PLAIN),
    ],
)
def test_what_a_configuration_asks_for(
    config: dict[str, Any], llm_config: dict[str, Any], present: list[str], files: list[str]
) -> None:
    needed = needed_files(config, llm_config, set(present))
    assert list(needed.files) == files
    assert not needed.problems


def test_a_talker_brings_its_own_files() -> None:
    needed = needed_files({}, {**TIED, "has_talker": True}, {"dit.mnn.weight"})
    assert {"talker.mnn", "spk_dict.mnn", "dit.mnn", "dit.mnn.weight", "bigvgan.mnn"} <= set(
        needed.files
    )
    tts = needed_files({}, {**TIED, "has_talker": True, "talker_type": "qwen3_tts"}, set())
    assert "code_predictor.mnn.weight" in tts.files
    assert "bigvgan.mnn" not in tts.files


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ({"llm_model": "../other/llm.mnn"}, "llm_model names '../other/llm.mnn', which climbs"),
        ({"llm_weight": "/etc/passwd"}, "llm_weight names '/etc/passwd', which is absolute"),
        ({"tokenizer_file": 5}, "tokenizer_file is not text"),
        ({"llm_config": "C:\\x"}, "llm_config names 'C:\\\\x', which names a drive"),
        ({"base_dir": "/models/"}, "config.json sets base_dir, which sends MNN to another folder"),
        ({"base_dir": ""}, "config.json sets base_dir"),
    ],
)
def test_names_that_escape_are_problems(config: dict[str, Any], problem: str) -> None:
    needed = needed_files(config, TIED, set())
    assert [text for text in needed.problems if text.startswith(problem)]
    assert all(".." not in path for path in needed.files)


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"null", b"\xff", b"[" * 100_000])
def test_a_configuration_that_is_none(data: bytes) -> None:
    parsed = parse_config("config.json", data)
    assert isinstance(parsed, str)
    assert parsed.startswith("config.json is not")


def test_the_name_of_the_second_configuration() -> None:
    assert llm_config_name({}) == "llm_config.json"
    assert llm_config_name({"llm_config": "x.json"}) == "x.json"
    assert llm_config_name({"llm_config": "./x.json"}) == "x.json"
    assert llm_config_name({"llm_config": "../x.json"}) == ""
    assert llm_config_name({"llm_config": 5}) == ""


def test_settings() -> None:
    config = {
        "backend_type": "opencl",
        "thread_num": 4,
        "precision": "low",
        "memory": "low",
        "power": "high",
        "sampler_type": "greedy",
        "dynamic_option": 2,
    }
    assert settings_of(config) == (Settings("opencl", 4, "low", "low", "high", "greedy", 2), ())
    assert settings_of({}) == (Settings(), ())
    foreign = {"backend_type": "npu", "thread_num": 68, "precision": "low_bf16", "power": "low"}
    foreign["dynamic_option"] = 10
    assert settings_of(foreign) == (Settings(power="low"), ())
    settings, problems = settings_of({"backend_type": 1, "thread_num": True, "power": "low"})
    assert settings == Settings(power="low")
    assert problems == (
        "config.json: backend_type is not text",
        "config.json: thread_num is not a whole number",
    )
