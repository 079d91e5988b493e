from __future__ import annotations

import json
import os
import sys

import pytest

from tiny_bundle import WEIGHT_BYTES, graph, write_tiny_bundle
from tokforge_engine.bundle_check import CheckedBundle, check_bundle
from tokforge_engine.errors import BundleDamaged
from tokforge_engine.memory import Shape
from tokforge_models.model_files.completeness import asked_files


@pytest.fixture
def bundle(tmp_path):
    return write_tiny_bundle(tmp_path / "tiny")


def edit(bundle, file, **keys):
    content = json.loads(bundle.joinpath(file).read_text())
    content.update(keys)
    bundle.joinpath(file).write_text(json.dumps(content))


def test_a_whole_bundle(bundle):
    edit(bundle, "llm_config.json", max_position_embeddings=2048)
    assert check_bundle(bundle) == CheckedBundle(
        path=bundle,
        tokenizer=bundle / "tokenizer.mtok",
        shape=Shape(
            weight_bytes=WEIGHT_BYTES,
            tokenizer_bytes=12,
            layers=1,
            parameters=2 * 6 * 5,
            largest=6 * 5,
            cached=2 * 64,
        ),
        embedding_rows=2,
        threads=2,
        memory=None,
        precision=None,
        context_length=2048,
    )


def test_what_decides_how_much_memory_it_takes(bundle):
    bundle.joinpath("llm.mnn").write_bytes(graph(name="/layers.0/self_attn/v_proj/Linear"))
    edit(bundle, "config.json", memory="high", precision="low")
    checked = check_bundle(bundle)
    assert (checked.memory, checked.precision) == ("high", "low")
    assert checked.shape.cached == 2 * 5


def test_the_default_names_are_those_of_mnn(bundle):
    bundle.joinpath("config.json").write_text('{"backend_type": "cpu"}')
    bundle.joinpath("tokenizer.mtok").rename(bundle / "tokenizer.txt")
    assert check_bundle(bundle).tokenizer.name == "tokenizer.txt"


@pytest.mark.parametrize(
    ("hurt", "says"),
    [
        (lambda b: b.joinpath("config.json").unlink(), "config.json is missing"),
        (lambda b: b.joinpath("config.json").write_text("{"), "config.json is not JSON"),
        (lambda b: b.joinpath("config.json").write_bytes(b"\xff{}"), "config.json is not JSON"),
        (lambda b: b.joinpath("config.json").write_text("[" * 99_999), "config.json is not JSON"),
        (lambda b: b.joinpath("config.json").write_text("[]"), "expected a JSON object, got list"),
        (lambda b: b.joinpath("config.json").write_text("{}"), "expected settings, got none"),
        (lambda b: b.joinpath("llm_config.json").unlink(), "llm_config.json is missing"),
        (lambda b: edit(b, "config.json", llm_model=7), "llm_model expected a file name, got 7"),
        (lambda b: edit(b, "config.json", base_dir="/"), "base_dir"),
        (lambda b: b.joinpath("llm.mnn.weight").unlink(), "llm.mnn.weight is missing"),
        (lambda b: b.joinpath("llm.mnn.weight").write_bytes(b""), "llm.mnn.weight is empty"),
        (
            lambda b: b.joinpath("llm.mnn.weight").write_bytes(bytes(WEIGHT_BYTES - 1)),
            "llm.mnn.weight is cut short: expected 142 bytes, got 141",
        ),
        (lambda b: b.joinpath("llm.mnn").write_bytes(b"\x10\0\0\0" * 9), "llm.mnn is cut short"),
        (lambda b: b.joinpath("tokenizer.mtok").unlink(), "tokenizer.mtok is missing"),
        (lambda b: b.joinpath("tokenizer.mtok").write_text("<html>"), "not a tokenizer"),
        (lambda b: edit(b, "llm_config.json", hidden_size="big"), "hidden_size expected"),
        (lambda b: edit(b, "llm_config.json", layer_nums=True), "layer_nums expected"),
        (
            lambda b: edit(b, "llm_config.json", tie_embeddings="yes"),
            "tie_embeddings expected weight_offset",
        ),
        (
            lambda b: edit(b, "llm_config.json", tie_embeddings=[1, "x", 2]),
            "tie_embeddings expected weight_offset",
        ),
        (
            lambda b: edit(b, "llm_config.json", tie_embeddings=[10, 74, 69, 4, 32]),
            "embedding ends at byte 143",
        ),
        (
            lambda b: edit(b, "llm_config.json", tie_embeddings=[0, 0, 0, 4, 32]),
            "embeddings_bf16.bin is missing",
        ),
        (lambda b: edit(b, "llm_config.json", is_visual=True), "visual.mnn is missing"),
    ],
)
def test_each_fault_is_named(bundle, hurt, says):
    hurt(bundle)
    with pytest.raises(BundleDamaged, match=says) as caught:
        check_bundle(bundle)
    assert caught.value.exit_code == 5
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "name", ["../x", "/etc/passwd", "C:\\x", "C:x", "\\\\host\\x", "a/../../x", "..\\x", "", "a\0b"]
)
def test_no_file_outside_is_looked_at(bundle, name):
    edit(bundle, "config.json", llm_weight=name)
    with pytest.raises(BundleDamaged, match="leads out of the bundle"):
        check_bundle(bundle)


@pytest.mark.parametrize(
    ("tied", "size", "rows"),
    [
        ([10, 74, 10, 4, 32], None, 2),
        ({"weight_offset": 10, "alpha_offset": 138, "alpha_size": 4, "quant_bit": 8}, None, 2),
        (None, 3 * 128, 3),
        ([0, 0, 0, 8, 32], 3 * 64, 3),
    ],
)
def test_counts_the_embedding_wherever_it_lies(bundle, tied, size, rows):
    edit(bundle, "llm_config.json", tie_embeddings=tied)
    if size is not None:
        bundle.joinpath("embeddings_bf16.bin").write_bytes(bytes(size))
    assert check_bundle(bundle).embedding_rows == rows


def test_all_faults_at_once(bundle):
    bundle.joinpath("tokenizer.mtok").unlink()
    bundle.joinpath("llm.mnn.weight").unlink()
    edit(bundle, "llm_config.json", hidden_size=0)
    with pytest.raises(BundleDamaged) as caught:
        check_bundle(bundle)
    for part in ("tokenizer.mtok", "llm.mnn.weight", "hidden_size"):
        assert part in str(caught.value)


def test_a_folder_where_a_file_should_be(bundle):
    bundle.joinpath("llm.mnn").unlink()
    bundle.joinpath("llm.mnn").mkdir()
    with pytest.raises(BundleDamaged, match=r"llm\.mnn is not a file"):
        check_bundle(bundle)


@pytest.mark.skipif(sys.platform == "win32", reason="pipes with names")
@pytest.mark.parametrize("name", ["config.json", "llm_config.json", "llm.mnn", "tokenizer.mtok"])
def test_a_pipe_is_not_waited_for(bundle, name):
    bundle.joinpath(name).unlink()
    os.mkfifo(bundle / name)
    with pytest.raises(BundleDamaged, match=f"{name} is not a file"):
        check_bundle(bundle)


@pytest.mark.parametrize("name", ["config.json", "llm_config.json", "llm.mnn", "tokenizer.mtok"])
def test_a_file_beyond_all_bounds_is_not_read(bundle, name):
    with bundle.joinpath(name).open("r+b") as stream:
        stream.truncate(2**40)
    with pytest.raises(BundleDamaged, match="larger than"):
        check_bundle(bundle)


def test_no_bundle_at_all(tmp_path):
    with pytest.raises(BundleDamaged, match="nothing there"):
        check_bundle(tmp_path / "no")
    with pytest.raises(BundleDamaged, match="got a file"):
        check_bundle(write_tiny_bundle(tmp_path / "tiny") / "llm.mnn")


@pytest.mark.parametrize(
    ("file", "keys", "followed"),
    [
        ("config.json", {}, True),
        ("config.json", {"base_dir": "/models/"}, False),
        ("config.json", {"base_dir": ""}, False),
        ("config.json", {"base_dir": None}, False),
        ("llm_config.json", {"base_dir": "/models/"}, True),
        ("config.json", {"llm_model": "./llm.mnn"}, True),
        ("config.json", {"llm_weight": "../llm.mnn.weight"}, False),
        ("config.json", {"llm_config": "/llm_config.json"}, False),
        ("config.json", {"tokenizer_file": 3}, False),
        ("llm_config.json", {"tokenizer_file": "C:\\t"}, False),
        ("llm_config.json", {"tie_embeddings": None}, False),
    ],
)
def test_what_goes_into_a_store_is_what_the_engine_follows(bundle, file, keys, followed):
    edit(bundle, file, **keys)
    present = {path.name for path in bundle.iterdir()}
    asked = asked_files(lambda name: (bundle / name).read_bytes(), present)
    assert (not asked.problems and set(asked.files) <= present) is followed
    try:
        check_bundle(bundle)
    except BundleDamaged:
        assert not followed
    else:
        assert followed
