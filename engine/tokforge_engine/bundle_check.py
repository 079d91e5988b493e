"""Whether a bundle can be given to MNN: looked at without MNN.

MNN follows a damaged bundle into a segmentation fault, so this looks first at what can be seen
from outside: that the two configuration files parse, that the files they name are there and
inside the bundle, that the graph is whole and the weight file as long as the graph asks.
"""

from __future__ import annotations

import errno
import json
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath

from tokforge_engine.errors import BundleDamaged
from tokforge_engine.memory import Shape
from tokforge_engine.net_file import NetFacts, NotWhole, read_net
from tokforge_engine.regular_file import read_head, read_regular

_MAX_CONFIG_BYTES = 16 * 2**20
# A graph without its weights has a few megabytes; a flatbuffer can have 2 GiB at most.
_MAX_NET_BYTES = 512 * 2**20
_MAX_TOKENIZER_BYTES = 64 * 2**20
# First number in every tokenizer file that MNN reads.
_TOKENIZER_MAGIC = "430"
# Where an embedding lies that is a part of the weight file, in the order of the list.
_TIED = ("weight_offset", "alpha_offset", "alpha_size", "quant_bit", "quant_block")


@dataclass(frozen=True, slots=True)
class CheckedBundle:
    """What the checks read on the way.

    Attributes:
        path: the bundle's directory, absolute.
        tokenizer: its tokenizer file.
        shape: what decides how much memory it takes.
        embedding_rows: how many tokens it has a vector for; as many as the model has logits.
        threads: what its config.json asks for, or None.
        memory: the memory setting of its config.json, or None.
        precision: the precision of its config.json, or None.
        context_length: tokens it was made for, or None where it does not say.
    """

    path: Path
    tokenizer: Path
    shape: Shape
    embedding_rows: int
    threads: int | None
    memory: str | None
    precision: str | None
    context_length: int | None


def check_bundle(path: Path) -> CheckedBundle:
    """Look for whatever MNN would crash on, as far as it shows from outside.

    Args:
        path: the bundle's directory.

    Raises:
        BundleDamaged: names every fault that was found, not only the first.
    """
    if not path.is_dir():
        raise BundleDamaged(
            f"no bundle at {path}; expected a directory, "
            f"got {'a file' if path.exists() else 'nothing there'}",
            hint="tokforge ls shows what is installed",
        )
    check = _Check(path.absolute())
    checked = check.run()
    if check.faults:
        raise BundleDamaged(
            f"the bundle at {path} is damaged: {'; '.join(check.faults)}",
            hint="tokforge verify --repair mends an installed bundle; a directory of your own "
            "needs a fresh copy",
        )
    return checked


class _Check:
    def __init__(self, path: Path) -> None:
        self.faults: list[str] = []
        self._path = path
        self._config: dict[str, object] = {}

    def run(self) -> CheckedBundle:
        self._config = self._read_json("config.json")
        if "base_dir" in self._config:
            self.faults.append("config.json sets base_dir, which sends MNN to another folder")
        llm_config = self._read_json(self._name("llm_config", "llm_config.json"))
        if not self._config or not llm_config:
            # What the other files are called is not known.
            return self._told(self._path, self._shape(None, None, None), 0)
        # MNN lays llm_config.json over config.json.
        self._config = {**self._config, **llm_config}
        self._check_shape()
        net = self._file("llm_model", "llm.mnn")
        weight = self._file("llm_weight", "llm.mnn.weight")
        facts = self._check_net(net, weight) if net is not None else None
        tokenizer = self._file("tokenizer_file", "tokenizer.txt")
        if tokenizer is not None:
            self._check_tokenizer(tokenizer)
        embedding_rows = self._check_embedding(weight)
        for switch, key, default in (
            ("is_visual", "visual_model", "visual.mnn"),
            ("is_audio", "audio_model", "audio.mnn"),
        ):
            if self._config.get(switch) is True:
                self._file(key, default)
        shape = self._shape(facts, weight, tokenizer)
        return self._told(tokenizer or self._path, shape, embedding_rows)

    def _told(self, tokenizer: Path, shape: Shape, embedding_rows: int) -> CheckedBundle:
        return CheckedBundle(
            path=self._path,
            tokenizer=tokenizer,
            shape=shape,
            embedding_rows=embedding_rows,
            threads=self._number("thread_num"),
            memory=self._word("memory"),
            precision=self._word("precision"),
            context_length=self._number("max_position_embeddings"),
        )

    def _shape(self, facts: NetFacts | None, weight: Path | None, tokenizer: Path | None) -> Shape:
        layers, hidden = self._number("layer_nums") or 0, self._number("hidden_size") or 0
        facts = facts or NetFacts(0, 0, 0, 0, 0)
        return Shape(
            weight_bytes=weight.stat().st_size if weight else 0,
            tokenizer_bytes=tokenizer.stat().st_size if tokenizer else 0,
            layers=layers,
            parameters=facts.parameters,
            largest=facts.largest,
            # Where the graph does not tell: no model caches more than this.
            cached=facts.cached or 2 * layers * hidden,
        )

    def _read_json(self, name: str) -> dict[str, object]:
        file = self._existing(name)
        if file is None:
            return {}
        try:
            content = json.loads(read_regular(file, _MAX_CONFIG_BYTES).decode())
        except OSError as error:
            self.faults.append(f"{name} cannot be read ({error.strerror})")
            return {}
        except (ValueError, RecursionError) as error:
            self.faults.append(f"{name} is not JSON ({error})")
            return {}
        if not isinstance(content, dict):
            self.faults.append(f"{name} expected a JSON object, got {type(content).__name__}")
            return {}
        if not content:
            self.faults.append(f"{name} expected settings, got none")
        return content

    def _name(self, key: str, default: str) -> str:
        name = self._config.get(key, default)
        if not isinstance(name, str):
            self.faults.append(f"{key} expected a file name, got {name!r}")
            return default
        return name

    def _file(self, key: str, default: str) -> Path | None:
        return self._existing(self._name(key, default))

    def _existing(self, name: str) -> Path | None:
        windows, posix = PureWindowsPath(name), PurePosixPath(name)
        if (
            not name
            or not name.isprintable()
            or windows.drive
            or windows.root
            or posix.is_absolute()
            or ".." in windows.parts
        ):
            self.faults.append(f"the file name {name[:80]!r} leads out of the bundle")
            return None
        file = self._path / name
        try:
            if not file.exists():
                self.faults.append(f"{name} is missing")
            elif not file.is_file():
                self.faults.append(f"{name} is not a file")
            elif file.stat().st_size == 0:
                self.faults.append(f"{name} is empty")
            else:
                return file
        except OSError as error:
            self.faults.append(f"{name} cannot be read ({error.strerror})")
        return None

    def _number(self, key: str) -> int | None:
        value = self._config.get(key)
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            return None
        return value

    def _word(self, key: str) -> str | None:
        value = self._config.get(key)
        return value if isinstance(value, str) else None

    def _check_shape(self) -> None:
        for key in ("hidden_size", "layer_nums"):
            if self._number(key) is None:
                self.faults.append(
                    f"llm_config.json: {key} expected a positive whole number, "
                    f"got {self._config.get(key)!r}"
                )

    def _check_net(self, net: Path, weight: Path | None) -> NetFacts | None:
        try:
            facts = read_net(read_regular(net, _MAX_NET_BYTES))
        except NotWhole as fault:
            self.faults.append(f"{net.name} is cut short or not a model: {fault}")
            return None
        except OSError as error:
            self.faults.append(f"{net.name} cannot be read ({error.strerror})")
            return None
        if weight is not None and (size := weight.stat().st_size) < facts.weight_bytes:
            self.faults.append(
                f"{weight.name} is cut short: expected {facts.weight_bytes:,} bytes, got {size:,}"
            )
        return facts

    def _check_tokenizer(self, tokenizer: Path) -> None:
        try:
            if tokenizer.stat().st_size > _MAX_TOKENIZER_BYTES:
                raise OSError(errno.EFBIG, f"larger than {_MAX_TOKENIZER_BYTES:,} bytes")
            head = read_head(tokenizer, 64).split()
        except OSError as error:
            self.faults.append(f"{tokenizer.name} cannot be read ({error.strerror})")
            return
        if head[:1] != [_TOKENIZER_MAGIC.encode()]:
            self.faults.append(f"{tokenizer.name} is not a tokenizer of MNN")

    def _check_embedding(self, weight: Path | None) -> int:
        """Check where the embedding lies; its rows, or 0 where that cannot be told."""
        hidden_size = self._number("hidden_size") or 1
        tied = self._config.get("tie_embeddings")
        if tied is None:
            return self._embedding_file_rows(2 * hidden_size)
        parts = [tied.get(key, 0) for key in _TIED] if isinstance(tied, dict) else tied
        if (
            not isinstance(parts, list)
            or len(parts) < len(_TIED)
            or not all(isinstance(part, int) and part >= 0 for part in parts)
        ):
            self.faults.append(
                f"llm_config.json: tie_embeddings expected {', '.join(_TIED)}, got {tied!r}"
            )
            return 0
        start, scales, scales_size, bits = parts[:4]
        if start == 0:
            return self._embedding_file_rows(bits * hidden_size // 8)
        if weight is not None and (size := weight.stat().st_size) < scales + scales_size:
            self.faults.append(
                f"llm_config.json says that the embedding ends at byte {scales + scales_size:,} "
                f"of {weight.name}, which has {size:,}"
            )
        return int((scales - start) * 8 // (max(bits, 1) * hidden_size))

    def _embedding_file_rows(self, row_bytes: int) -> int:
        file = self._file("embedding_file", "embeddings_bf16.bin")
        return file.stat().st_size // max(row_bytes, 1) if file is not None else 0
