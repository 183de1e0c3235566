"""`seal interface show|diff|export` on a workspace of files."""

import argparse
import json

import pytest

from seal.commands import interface
from seal.core.errors import ArtifactError, ParamError, RoundError
from seal.interface.state import InterfaceState, Item
from seal.settings.rounds import Start
from seal.settings.typed import plain

ENUM = Item("enum", "issue_refund.reason", "docs", "damaged K3 late K7", "argument_mismatch", "r1", 5)
NEEDS = Item("needs", "issue_refund", "docs", "after verify_buyer", "constraint_violation", "r2", 3)
HINT = Item("guidance", "miss_param", "hint", "call nothing", "spurious_tool_call", "r1", 2, "retired")


@pytest.fixture
def root(tmp_path):
    for name, items in {"r0": (), "r1": (ENUM, HINT), "r2": (NEEDS, HINT)}.items():
        (tmp_path / "data/rounds" / name).mkdir(parents=True)
        (tmp_path / "data/rounds" / name / "interface.json").write_text(InterfaceState(items).to_json())
    start = plain(Start(env="shop", policy={"kind": "scripted"}))
    params = {"envs": {"shop": {}}, "starts": dict.fromkeys(("r0", "r1", "r2", "r3"), start)}
    (tmp_path / "params.yaml").write_text(json.dumps(params))
    return tmp_path


def seal(root, *words):
    parser = argparse.ArgumentParser()
    interface.add_arguments(parser)
    return interface.run(parser.parse_args([*words, "--root", str(root)]))


def test_show_lists_active_cues_with_their_reason(root, capsys):
    assert seal(root, "show", "r1") == 0
    text = capsys.readouterr().out
    assert text.startswith("r1: 1 cues, 4 words, interface ")
    assert "issue_refund.reason  damaged K3 late K7  [enum argument_mismatch n=5 r1]" in text
    assert "call nothing" not in text
    seal(root, "show", "r1", "--all")
    assert "call nothing" in (text := capsys.readouterr().out) and text.rstrip().endswith("retired")
    seal(root, "show", "r0")
    assert capsys.readouterr().out == "r0: 0 cues, 0 words, interface bare\n"


def test_diff_names_what_came_and_went(root, capsys):
    assert seal(root, "diff", "r1", "r2") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].startswith("+ issue_refund  after verify_buyer")
    assert lines[3].startswith("- issue_refund.reason  damaged K3 late K7")
    assert lines[4] == "  0 unchanged"


def test_export_prints_tool_schemas(root, capsys):
    assert seal(root, "export", "r1") == 0
    tools = {tool["function"]["name"]: tool["function"] for tool in json.loads(capsys.readouterr().out)}
    reason = tools["issue_refund"]["parameters"]["properties"]["reason"]
    assert reason["description"] == "(damaged K3 late K7)"
    seal(root, "export", "r1", "--format", "mcp")
    assert {tool["name"] for tool in json.loads(capsys.readouterr().out)["tools"]} == set(tools)
    for mode, told in (("full", True), ("docs_only", True), ("feedback_only", False), ("off", False)):
        seal(root, "export", "r1", "--mode", mode)
        assert ("damaged" in capsys.readouterr().out) is told


@pytest.mark.parametrize("name", ["r9", "/etc", "../..", "", ".", "../rounds/r1", "r1/"])
@pytest.mark.parametrize("words", [("show",), ("diff", "r1"), ("export",)])
def test_a_round_that_is_not_declared_is_no_path(root, words, name):
    with pytest.raises(RoundError, match="not in params.yaml"):
        seal(root, *words, name)


def test_errors_name_the_remedy(root):
    with pytest.raises(ArtifactError, match="interface of r3: not made yet\n.*seal run"):
        seal(root, "show", "r3")
    (root / "data/rounds/r1/interface.json").write_text("{")
    with pytest.raises(ArtifactError):
        seal(root, "show", "r1")
    (root / "params.yaml").unlink()
    with pytest.raises(ParamError, match=r"params\.yaml"):
        seal(root, "export", "r1")
