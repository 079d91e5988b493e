"""The public names: all there, loaded late, none shadowed by a module of the same name."""

from __future__ import annotations

import subprocess
import sys
import types

import pytest

import tokforge_models


@pytest.mark.parametrize("name", tokforge_models.__all__)
def test_every_public_name_is_there_and_documented(name: str) -> None:
    value = getattr(tokforge_models, name)
    assert not isinstance(value, types.ModuleType)
    assert value.__doc__


def test_the_table_of_homes_is_what_is_exported() -> None:
    assert sorted(tokforge_models._HOME_OF) == sorted(tokforge_models.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = tokforge_models.no_such_name


def test_importing_the_package_imports_none_of_its_modules() -> None:
    code = (
        "import sys, tokforge_models\n"
        "assert not [name for name in sys.modules if name.startswith('tokforge_models.')]"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
