"""The single-shot verbs, as a shell sees them: JSON in, JSON out, told errors."""

import io
import json
import os
import subprocess
import sys

import pytest
from bfcl_cases import CASES
from workspaces import ROOT

from seal.cli import main


@pytest.fixture
def seal(monkeypatch, capsys):
    """Run a verb with this standard input; its exit code and its output (JSON where it succeeded)."""

    def run(stdin, *words):
        monkeypatch.setattr("sys.stdin", io.StringIO(stdin if isinstance(stdin, str) else json.dumps(stdin)))
        code = main([str(word) for word in words])
        told = capsys.readouterr()
        return (code, json.loads(told.out)) if code == 0 else (code, told.err)

    return run


def test_parse_prints_calls_errors_and_end_of_turn(seal, tmp_path):
    schema = tmp_path / "schema.json"
    schema.write_text('{"sort": ["file_name"]}')
    text = "[sort('a'), add(a=1+1)]"
    code, told = seal(text, "parse", "--format", "pythonic", "--schema", schema)
    assert code == 0
    assert told == {
        "calls": [{"name": "sort", "arguments": {"file_name": "a"}}],
        "errors": [{"kind": "not_literal", "message": "BinOp is no literal"}],
        "end_of_turn": False,
    }


@pytest.mark.parametrize("case", [c for c in CASES.values() if c["kind"] == "parser"], ids=lambda case: case["id"])
def test_parse_is_strict_by_default(seal, case):
    given = case["input"]
    code, told = seal(given["text"], "parse", "--format", given["format"])
    strict = seal(given["text"], "parse", "--format", given["format"], "--mode", "strict")
    assert code == 0 and strict == (0, told) and set(told) == {"calls", "errors", "end_of_turn"}


def test_call_prints_result_strings(seal, tmp_path):
    case = CASES["exec_bool_string_truthy"]
    config = tmp_path / "config.json"
    config.write_text(json.dumps(case["input"]["initial_config"]))
    calls = [{"name": call["name"], "arguments": call["args"]} for call in case["input"]["calls"]]
    words = ("call", "--env", "bfcl", "--classes", ",".join(case["input"]["classes"]), "--config", config)
    assert seal(calls, *words) == (0, case["expected"]["results"])
    assert seal([], *words) == (0, [])


def test_call_knows_long_context_and_several_classes(seal):
    stock = {"name": "get_stock_info", "arguments": {"symbol": "AAPL"}}
    calls = [stock, {"name": "add", "arguments": {"a": 1, "b": 2}}]
    short = seal(calls, "call", "--env", "bfcl", "--classes", "TradingBot,MathAPI")
    code, long = seal(calls, "call", "--env", "bfcl", "--classes", "TradingBot,MathAPI", "--long-context")
    assert short[0] == code == 0 and long[1] == short[1][1] == '{"result": 3}'
    assert len(long[0]) > 10_000 > len(short[1][0])


def test_check_prints_official_verdict_and_turns(seal):
    case = CASES["verify_early_then_silent"]
    code, told = seal(case["input"]["turns"], "check", "--env", "bfcl", "--task", case["input"]["task"])
    expected = case["expected"]
    assert code == 0
    assert told["official"] == {
        "valid": False,
        "error_type": expected["official_error_type"],
        "turn": expected["failing_turn"],
    }
    assert [turn["valid"] for turn in told["turns"]].index(False) == expected["failing_turn"]
    assert told["turns"][2]["primary"] == expected["label_at_turn2"]
    assert told["turns"][3]["primary"] == expected["label_at_turn3"]
    keys = {"state_ok", "response_ok", "valid", "primary", "labels", "root"}
    assert all(set(turn) == keys and turn["primary"] in turn["labels"] for turn in told["turns"])


def test_check_of_unreadable_calls_and_missing_turns(seal):
    code, told = seal([[["ls()", "x = 1", ""]]], "check", "--env", "bfcl", "--task", "multi_turn_base_0")
    assert code == 0 and told["official"]["error_type"] == "multi_turn:force_terminated"
    assert told["turns"][0]["primary"] == "invalid_tool_call" and len(told["turns"]) == 4


def test_check_reads_call_strings_once_for_both_verdicts(seal):
    turns = [[["cd('document'), mkdir(dir_name='temp')", "[mv(source='final_report.pdf', destination='temp')]"]]]
    code, told = seal([*turns, [], [], []], "check", "--env", "bfcl", "--task", "multi_turn_base_0")
    assert code == 0 and told["official"]["turn"] == 1 and [turn["valid"] for turn in told["turns"]][0]


def test_check_of_a_built_in_domain(seal):
    code, told = seal([[["no_such_tool()"]]], "check", "--env", "shop", "--task", "shop_base_s000")
    assert code == 0 and "official" not in told and told["turns"][0]["primary"] == "invalid_tool_call"


@pytest.fixture
def at(tmp_path, monkeypatch):
    """Go to a folder: a workspace with these environments, or none."""

    def go(envs=""):
        if envs:
            (tmp_path / "params.yaml").write_text(f"envs: {envs}\n")
            (tmp_path / "dvc.yaml").write_text("stages: {}\n")
        monkeypatch.chdir(tmp_path)

    return go


def test_check_knows_the_tasks_of_the_workspace_and_elsewhere_those_of_the_defaults(seal, at):
    words = ("check", "--env", "shop", "--task", "shop_base_s130")
    at()
    code, told = seal([], *words)
    assert code == 2 and "500 tasks, shop_base_s000 to shop_long_context_s124" in told
    at("{compliance: {}}")
    assert seal([], *words) == (code, told)
    at("{shop: {train: 120, dev: 1, test: 10}}")
    assert seal([], *words)[0] == 0
    code, told = seal([], *words[:-1], "shop_base_s131")
    assert code == 2 and "524 tasks, shop_base_s000 to shop_long_context_s130" in told


def test_call_knows_the_tasks_of_the_workspace_too(seal, at):
    words = ("call", "--task", "airline_0", "--env")
    at("{tau2: {domain: retail}}")
    assert seal([], *words, "tau2:airline") == (0, [])
    code, told = seal([], *words, "tau2")
    assert code == 2 and "retail_0 to retail_" in told


@pytest.mark.parametrize(
    ("stdin", "words", "code", "told"),
    [
        ("[]", ("parse", "--format", "pythonic", "--schema", "no/such/file"), 3, "tool schema"),
        ("", ("call", "--env", "bfcl", "--classes", "MathAPI"), 2, "empty"),
        ("{", ("call", "--env", "bfcl", "--classes", "MathAPI"), 2, "no JSON"),
        ('{"name": "add"}', ("call", "--env", "bfcl", "--classes", "MathAPI"), 2, "a list of calls"),
        ('[{"name": 1}]', ("call", "--env", "bfcl", "--classes", "MathAPI"), 2, "call 0"),
        ("[]", ("call", "--env", "bfcl", "--classes", "NoAPI"), 2, "known classes"),
        ("{}", ("check", "--env", "bfcl", "--task", "multi_turn_base_0"), 2, "a list of turns"),
        ('[["ls()"]]', ("check", "--env", "bfcl", "--task", "multi_turn_base_0"), 2, "turn 0"),
        ("[[[1]]]", ("check", "--env", "bfcl", "--task", "multi_turn_base_0"), 2, "call of turn 0"),
        ("[]", ("check", "--env", "bfcl", "--task", "no_such_task"), 2, "no_such_task"),
        ("[[], [], [], [], []]", ("check", "--env", "bfcl", "--task", "multi_turn_base_0"), 2, "4 user turns"),
    ],
)
def test_wrong_input_is_told(seal, stdin, words, code, told):
    found, message = seal(stdin, *words)
    assert found == code and told in message


@pytest.mark.parametrize(
    ("option", "envs"),
    [
        (("--classes", "MathAPI"), ("shop", "tau2", "tau2:solo", "custom:some.tools", "bfcl_memory")),
        (("--long-context",), ("shop", "tau2", "custom:some.tools")),
        (("--config", "state.json"), ("shop", "tau2", "bfcl_web")),
        (("--task", "multi_turn_base_0"), ("bfcl", "shop", "custom:some.tools")),
    ],
)
def test_an_option_that_says_nothing_there_is_told(seal, option, envs):
    for env in envs:
        code, message = seal("[]", "call", "--env", env, *option)
        assert code == 2 and message.count("error:") == 1
        assert option[0] in message and f"--env {env}" in message and "it applies to" in message


@pytest.mark.parametrize(
    ("format", "option", "told"),
    [
        ("openai", "--schema", "pythonic, words"),
        ("qwen_xml", "--schema", "pythonic, words"),
        ("words", "--mode", "qwen"),
    ],
)
def test_parse_tells_an_option_it_has_no_use_for(tmp_path, monkeypatch, capsys, format, option, told):
    (tmp_path / "schema.json").write_text('{"ls": []}')
    value = {"--schema": str(tmp_path / "schema.json"), "--mode": "lenient"}[option]
    monkeypatch.setattr("sys.stdin", io.StringIO("done"))
    assert main(["parse", "--format", format, option, value]) == 0
    said = capsys.readouterr()
    assert said.err.startswith(f"unused: {option}") and told in said.err and json.loads(said.out)


TELECOM = "telecom_[mobile_data_issue]airplane_mode_on|user_abroad_roaming_enabled_off[PERSONA:None]"


def test_check_says_how_turns_were_read_and_what_recovered(seal):
    """The same rule in every environment: as many turns as the task's are a finished conversation."""
    tasks = {
        "shop": "shop_base_s000",
        "bfcl": "multi_turn_base_0",
        "bfcl_memory": "memory_kv_0-customer-0",
        "tau2": "retail_0",
        "tau2:solo": TELECOM,
    }
    for env, task in tasks.items():
        code, told = seal([], "check", "--env", env, "--task", task)
        n = len(told["turns"])
        assert (code, told["given"]) == (0, {"turns": 0, "of": n, "stop_reason": "step_limit"})
        code, whole = seal([[]] * n, "check", "--env", env, "--task", task)
        assert (code, whole["given"]) == (0, {"turns": n, "of": n, "stop_reason": "finished"})
        assert [turn["primary"] for turn in told["turns"]] != [turn["primary"] for turn in whole["turns"]]
        assert not any("recovered" in turn for turn in (*told["turns"], *whole["turns"]))
    turns = [[["cd('nowhere')"], ["cd('document')"], ["mkdir('temp')"], ["mv('final_report.pdf', 'temp')"]], [], [], []]
    code, told = seal(turns, "check", "--env", "bfcl", "--task", "multi_turn_base_0")
    assert code == 0 and told["turns"][0]["primary"] == "pass"
    assert ["recovered" in turn for turn in told["turns"]] == [True, False, False, False]
    turns = [[["no_such_tool()"], ["toggle_airplane_mode()"], ["toggle_roaming()"], ["done()"]]]
    code, told = seal(turns, "check", "--env", "tau2:solo", "--task", TELECOM)
    assert code == 0 and told["turns"][0]["primary"] == "pass" and told["turns"][0]["recovered"] is True


def test_parse_tells_repairs_beside_its_output(monkeypatch, capsys):
    text = "<tool_call>{'name': 'ls', 'arguments': {}}</tool_call>"
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    assert main(["parse", "--format", "qwen_xml", "--mode", "lenient"]) == 0
    told = capsys.readouterr()
    calls = [{"name": "ls", "arguments": {}}]
    assert json.loads(told.out) == {"calls": calls, "errors": [], "end_of_turn": False}
    assert told.err == "repaired: python_literal\n"


@pytest.mark.parametrize(
    ("classes", "config", "told"),
    [
        ("", "{}", "known classes: GorillaFileSystem"),
        (" , ", "{}", "known classes: GorillaFileSystem"),
        ("MathAPI,NoAPI", "{}", "NoAPI"),
        ("MathAPI", '{"NoAPI": {}}', "NoAPI"),
        ("MathAPI", "[]", 'give BFCL\'s initial_config: {"ClassName": {...}}'),
        ("TravelAPI", '{"TravelAPI": 3}', "initial config of TravelAPI"),
        ("TravelAPI", '{"TravelAPI": {"budget_limit": NaN}}', "NaN is no JSON value"),
        ("TravelAPI", '{"TravelAPI": {"budget_limit": -1e999}}', "out of range"),
        ("GorillaFileSystem", '{"GorillaFileSystem": {"root": []}}', "initial config of GorillaFileSystem"),
        ("GorillaFileSystem", '{"GorillaFileSystem": {"root": {"a": {"contents": 3}}}}', "GorillaFileSystem"),
        ("MathAPI", "{", "no JSON"),
    ],
)
def test_wrong_classes_and_configs_are_one_clear_error(seal, tmp_path, classes, config, told):
    file = tmp_path / "config.json"
    file.write_text(config)
    code, message = seal("[]", "call", "--env", "bfcl", "--classes", classes, "--config", file)
    assert code in (2, 3) and told in message and message.count("error:") == 1
    assert "Error" not in message.replace("JSON", "") and "Traceback" not in message


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_numbers_that_are_no_json_are_told(seal, number):
    text = f'[{{"name": "add", "arguments": {{"a": {number}, "b": 1}}}}]'
    code, message = seal(text, "call", "--env", "bfcl", "--classes", "MathAPI")
    assert code == 2 and number in message


def test_a_config_may_hold_classes_that_are_not_asked_for(seal, tmp_path):
    config = tmp_path / "config.json"
    config.write_text('{"TravelAPI": {"budget_limit": 3.0}}')
    call = [{"name": "add", "arguments": {"a": 1, "b": 2}}]
    assert seal(call, "call", "--env", "bfcl", "--classes", "MathAPI", "--config", config) == (0, ['{"result": 3}'])


@pytest.mark.parametrize(
    ("said", "official"),
    [
        ("{'answer': 'Michael'}", {"valid": True, "error_type": None, "turn": None}),
        ("I do not know", {"valid": False, "error_type": "agentic:answer_not_found", "turn": 0}),
        ("core_memory_clear()", {"valid": False, "error_type": "agentic:no_last_message", "turn": 0}),
    ],
)
def test_check_of_an_answer(seal, said, official):
    turns = [[["archival_memory_list_keys()"], [said]]]
    code, told = seal(turns, "check", "--env", "bfcl_memory", "--task", "memory_kv_0-customer-0")
    assert code == 0 and told["official"] == official
    assert [turn["valid"] for turn in told["turns"]] == [official["valid"]]


def test_wrong_config_is_told(seal, tmp_path):
    config = tmp_path / "config.json"
    for text in ("[]", '{"GorillaFileSystem": 3}', '{"GorillaFileSystem": {"root": {"a": {}}}}'):
        config.write_text(text)
        code, message = seal("[]", "call", "--env", "bfcl", "--classes", "GorillaFileSystem", "--config", config)
        assert code == 2 and "initial config" in message


@pytest.mark.parametrize("verb", ["parse", "call", "check"])
def test_the_example_in_the_help_runs(verb, capsys):
    with pytest.raises(SystemExit):
        main([verb, "--help"])
    told = capsys.readouterr().out
    assert "standard input: " in told
    example = told.splitlines()[-1].replace("seal ", f"{sys.executable} -m seal.cli ", 1)
    done = subprocess.run(["bash", "-c", example], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and json.loads(done.stdout), done.stderr


@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
def test_bytes_that_are_no_text_are_told(locale):
    """In the C locale Python would read any bytes."""
    words = [sys.executable, "-m", "seal.cli", "parse", "--format", "pythonic"]
    env = {**os.environ, "LC_ALL": locale}
    done = subprocess.run(words, input=b"[f()] \xff", cwd=ROOT, env=env, capture_output=True, check=False)
    assert done.returncode == 2 and b"standard input" in done.stderr and b"give UTF-8 text" in done.stderr
