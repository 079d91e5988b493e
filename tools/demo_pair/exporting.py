"""Stage 6: from a transformers folder to an MNN bundle, through llmexport.

llmexport's console script cannot start (it imports its own package by a name that only its folder
knows), so its file is run in that folder's place. It converts with MNN's converter, which may
install an old protobuf into its environment behind our back; the requirements file says more.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

BLOCK = 128
BITS = 4
TOKENIZER_FILE = "tokenizer.mtok"
BUNDLE_FILES = ("config.json", "llm_config.json", "llm.mnn", "llm.mnn.weight", TOKENIZER_FILE)


def export(
    source: Path, bundle: Path, threads: int, *, bits: int = BITS, block: int = BLOCK
) -> None:
    """Replace the bundle by the export of the transformers folder `source`."""
    spec = importlib.util.find_spec("llmexport")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("llmexport is not installed: see requirements-demo-pair.txt")
    tool = Path(spec.submodule_search_locations[0])
    raw = bundle.with_name(f"{bundle.name}.raw")
    shutil.rmtree(raw, ignore_errors=True)
    raw.mkdir(parents=True)
    command = [sys.executable, str(tool / "llmexport.py"), "--path", str(source), "--export", "mnn"]
    command += ["--dst_path", str(raw), "--quant_bit", str(bits), "--quant_block", str(block)]
    environment = os.environ | {"PYTHONPATH": str(tool), "HF_HUB_OFFLINE": "1"}
    run = subprocess.run(
        command, cwd=raw, env=environment, check=False, capture_output=True, text=True
    )
    if run.returncode != 0 or not (raw / "llm.mnn.weight").exists():
        raise SystemExit(f"llmexport failed ({run.returncode}):\n{run.stdout}\n{run.stderr}")
    shutil.rmtree(bundle, ignore_errors=True)
    bundle.mkdir(parents=True)
    for name in BUNDLE_FILES[1:]:
        shutil.copy(raw / name, bundle / name)
    settings = {
        "llm_model": "llm.mnn",
        "llm_weight": "llm.mnn.weight",
        "tokenizer_file": TOKENIZER_FILE,
        "backend_type": "cpu",
        "thread_num": threads,
        "precision": "low",
        "memory": "low",
        "sampler_type": "greedy",
    }
    (bundle / "config.json").write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")
    shutil.rmtree(raw)
