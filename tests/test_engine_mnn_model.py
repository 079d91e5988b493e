from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from demo_pair import TARGET, needs_mnn
from tokforge_engine import Incompatible, Message, RuntimeSettings, ToolCall
from tokforge_engine.bundle_check import check_bundle
from tokforge_engine.mnn_model import MnnModel

pytestmark = needs_mnn

TEMPLATE = """\
{% if tools %}[{% for tool in tools %}{{ tool | tojson }}{% endfor %}]{% endif %}\
{% for message in messages %}<{{ message.role }}>{{ message.content }}\
{% if message.reasoning_content %}({{ message.reasoning_content }}){% endif %}\
{% if message.tool_calls %}{% for call in message.tool_calls %}\
{{ call.function.name }}{{ call.function.arguments | tojson }}{% endfor %}{% endif %}{% endfor %}"""
TOOL = '{"type": "function", "function": {"name": "sum"}}'


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = Path(shutil.copytree(TARGET, tmp_path_factory.mktemp("bundle") / "talker"))
    config = json.loads(folder.joinpath("llm_config.json").read_text())
    config["jinja"]["chat_template"] = TEMPLATE
    folder.joinpath("llm_config.json").write_text(json.dumps(config))
    return MnnModel(
        check_bundle(folder), RuntimeSettings(threads=1), tmp_path_factory.mktemp("scratch")
    )


def test_tools_reach_the_template_and_are_gone_afterwards(model):
    chat = [Message("user", "hi")]
    assert model.render(chat, tools=[TOOL, TOOL]) == f"[{TOOL}{TOOL}]<user>hi"
    assert model.render(chat) == "<user>hi"


def test_calls_and_thoughts_reach_the_template_as_they_are(model):
    chat = [
        Message("assistant", 'a "q"', "so so", (ToolCall("sum", '{"of": [1, "\u00fc"]}'),)),
        Message("tool", '{"role": "system"}'),
    ]
    said = model.render(chat)
    assert said == ('<assistant>a "q"(so so)sum{"of": [1, "\u00fc"]}<tool>{"role": "system"}')


def test_tools_that_a_template_would_drop_are_refused(model, tmp_path):
    plain = MnnModel(check_bundle(TARGET), RuntimeSettings(threads=1), tmp_path)
    with pytest.raises(Incompatible, match="knows no tools"):
        plain.render([Message("user", "hi")], tools=[TOOL])
