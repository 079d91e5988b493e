"""README and docs/ stay true: links lead somewhere, modules and commands are all named."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import tokforge_engine
import tokforge_models
from demo_pair import needs_mnn
from tokforge_models.cli.app import command_tree

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_relative_links_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    links = re.findall(r"\]\((?!https?://|#|mailto:)([^)#]+)", text)
    broken = [link for link in links if not (page.parent / link).exists()]
    assert not broken


@pytest.mark.parametrize("page", PAGES[1:], ids=lambda page: page.name)
def test_the_readme_leads_to_every_page(page: Path) -> None:
    assert f"docs/{page.name}" in README


@pytest.mark.parametrize("package", [tokforge_models, tokforge_engine])
def test_the_map_names_every_module(package: object) -> None:
    folder = Path(str(package.__file__)).parent  # type: ignore[attr-defined]
    modules = {path.stem for path in folder.rglob("*.py") if not path.stem.startswith("_")}
    rooms = README.partition("## The rooms")[2].partition("\n## ")[0]
    named = set(re.findall(r"`([a-z_]+)`", rooms))
    assert not modules - named


def test_every_dependency_has_its_line() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = {re.split(r"[<>=;~\[ ]", dependency)[0] for dependency in project["dependencies"]}
    listed = README.partition("## Dependencies")[2].partition("\n## ")[0]
    assert {name for name in names if f"| `{name}` |" not in listed} == set()


def test_every_command_is_in_the_table() -> None:
    page = (ROOT / "docs/commands.md").read_text(encoding="utf-8")
    known = command_tree().registered_commands
    names = [command.name or command.callback.__name__ for command in known]  # type: ignore[union-attr]
    assert not [name for name in names if not re.search(rf"^\| `{name}\b", page, re.MULTILINE)]


@needs_mnn
def test_the_readmes_program_runs(home: Path) -> None:
    (program,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert ended.stdout.strip()
    assert ended.stderr == b""


def test_the_readme_shows_no_place_holder() -> None:
    assert not re.search(r"^[A-Z]{4,}$", README, re.MULTILINE)
