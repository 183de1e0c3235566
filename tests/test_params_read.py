"""Reading params.yaml: what is wrong is named with its dotted key, its value and a remedy."""

import re
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seal.core.errors import ParamError
from seal.env.custom.tasks import TaskEntry
from seal.settings.envs import ENVS
from seal.settings.evolve import EvolveParams, RewriteParams
from seal.settings.params import load_params, parse_params
from seal.settings.play import CollectParams, EvaluateParams
from seal.settings.policies import POLICIES
from seal.settings.rounds import Defaults, FlowParams, Round, RunParams, Start
from seal.settings.train import TrainParams
from seal.settings.typed import Settings, plain, read


def start(env: str = "shop", **policy) -> dict:
    return {"r0": {"env": env, "recipe": 1, "policy": policy, "evaluate": plain(EvaluateParams())}}


def entry(parent: str = "r0", **change) -> dict:
    return {"parent": parent, "env": "shop", "recipe": 1, **plain(Defaults())} | change


def params(**change) -> dict:
    return {"envs": {"shop": {}}, "starts": start(kind="scripted"), "rounds": {}} | change


def test_a_resolved_round_reads_back_as_it_was_written():
    found = parse_params(params(rounds={"r1": entry(), "b-2": entry("r1")}))
    assert found.rounds["b-2"].parent == "r1"
    assert plain(found.rounds["r1"]) == entry()
    assert found.rounds["r1"].train == TrainParams()


@pytest.mark.parametrize(
    ("data", "key", "remedy"),
    [
        ({"rnu": {}}, "rnu", "did you mean run"),
        (params(run={"sede": 1}), "run.sede", "did you mean seed"),
        (params(run={"seed": "one"}), "run.seed", "type int"),
        (params(run={"seed": True}), "run.seed", "type int"),
        (params(run={"threads": 0}), "run.threads", "from 1 to 256"),
        (params(envs={"shopp": {}}), "envs.shopp", "did you mean shop"),
        (params(envs={"shop": {"train": -1}}), "envs.shop.train", "out of range: use a value from 1 to 2147483648"),
        (params(defaults={"evolve": {"kinds": "plain"}}), "defaults.evolve.kinds", "any number of these: plain, all, "),
        (params(starts={"r0": {"env": "shop"}}), "starts.r0.policy", "add"),
        (params(starts=start(kind="nono")), "starts.r0.policy.kind", "nano"),
        (params(starts=start(kind=["nano"])), "starts.r0.policy.kind", "nano"),
        (params(starts=start(kind={"nano": 1})), "starts.r0.policy.kind", "nano"),
        (params(envs={"shop": {"train": 10**29}}), "envs.shop.train", "from 1 to 2147483648"),
        (params(defaults={"train": {"alpha": float("inf")}}), "defaults.train.alpha", "from 0 to 2147483648"),
        (params(defaults={"train": {"clip": [1.0, float("inf")]}}), "defaults.train.clip[1]", "2147483648"),
        (params(defaults={"train": {"lr": float("nan")}}), "defaults.train.lr", "from 0 to 1"),
        (params(envs={"shop": {}, "bfcl": {"x": 1}}), "envs.bfcl.x", "known keys: none"),
        (
            params(starts=start(kind="nano", x=1)),
            "starts.r0.policy.x",
            "unknown key",
        ),
        (params(starts=start("bfcl", kind="nano")), "starts.r0.env", "declare it under envs"),
        (params(defaults={"train": {"lr": "1e-4"}}), "defaults.train.lr", "type float"),
        (params(defaults={"train": {"algorithm": "ppo"}}), "defaults.train.algorithm", "grpo"),
        (params(defaults={"train": {"clip": [1.0]}}), "defaults.train.clip", "list of 2 float values"),
        (params(defaults={"train": {"clip": [1.0, 1.0, 1.0]}}), "defaults.train.clip", "list of 2 float values"),
        (params(defaults={"train": {"loss": "sapo"}}), "defaults.train.loss", "use one of: dapo, grpo, cispo"),
        (params(defaults={"train": {"lr": 10**400}}), "defaults.train.lr", "type float"),
        (params(defaults={"evaluate": {"split": ""}}), "defaults.evaluate.split", "use one of: train, dev, test"),
        (
            params(defaults={"diagnose": {"priority": [1]}}),
            "defaults.diagnose.priority",
            "; or use one of: fixed",
        ),
        (params(defaults={"train": {"clip": [1.0, "a"]}}), "defaults.train.clip[1]", "float"),
        (params(defaults={"evolve": {"gate": 3}}), "defaults.evolve.gate", "mapping"),
        (params(rounds={"r1": entry("r9")}), "rounds.r1.parent", "known: r0"),
        (params(rounds={"R1": entry()}), "rounds.R1", "small"),
        (params(rounds={3: entry()}), "rounds.3", "letter"),
        (params(rounds={"r0": entry()}), "rounds.r0", "take another"),
        (params(rounds={"r1": entry("r2"), "r2": entry("r1")}), "rounds.r1.parent", "cycle"),
        (params(rounds={"r1": entry("r1")}), "rounds.r1.parent", "cycle"),
        (params(rounds={"r1": entry(recipe=99)}), "rounds.r1.recipe", "update"),
        (params(rounds={"r1": {k: v for k, v in entry().items() if k != "parent"}}), "rounds.r1.parent", "add"),
        (
            params(rounds={"r1": entry(collect=plain(CollectParams(evolved=9)))}),
            "rounds.r1.collect.evolved",
            "group_size",
        ),
        (params(rounds={"r1": entry(diagnose={"priority": ["pass"]})}), "rounds.r1.diagnose.priority", "an order of"),
        (
            params(rounds={"r1": entry(train=plain(TrainParams()) | {"utility": {"bad": 1}})}),
            "rounds.r1.train.utility.bad",
            "label",
        ),
        (
            params(rounds={"r1": entry(train=plain(TrainParams(clip=(2.0, 1.0))))}),
            "rounds.r1.train.clip",
            "low <= high",
        ),
        (
            params(rounds={"r1": entry(evolve={"interface": "evolved"})}),
            "rounds.r1.evolve.token_budget",
            "add `token_budget: 400`",
        ),
    ],
)
def test_what_is_wrong_is_named(data, key, remedy):
    with pytest.raises(ParamError) as error:
        parse_params(data)
    assert error.value.thing == key
    assert remedy in error.value.remedy


@pytest.mark.parametrize("value", [[], "", 0, False, ["a"], "r1"])
@pytest.mark.parametrize("key", ["run", "flow", "envs", "starts", "defaults", "rounds"])
def test_a_section_is_a_mapping_or_empty(key, value):
    with pytest.raises(ParamError, match="mapping") as error:
        parse_params({key: value})
    assert error.value.thing == key
    assert parse_params({key: None}) == parse_params({key: {}}) == parse_params({})


def test_an_environment_is_a_mapping_or_empty():
    assert parse_params(params(envs={"shop": None})) == parse_params(params())
    with pytest.raises(ParamError, match="mapping"):
        parse_params(params(envs={"shop": []}))


@pytest.mark.parametrize("section", ["starts", "rounds"])
def test_an_id_has_at_most_64_characters(section):
    def named(name: str) -> dict:
        found = entry() if section == "rounds" else start(kind="scripted")["r0"]
        return params(**{section: {name: found}})

    assert "x" * 64 in getattr(parse_params(named("x" * 64)), section)
    for name in ("x" * 65, ""):
        with pytest.raises(ParamError, match="64 at most"):
            parse_params(named(name))


URLS = {
    "defaults.evolve.rewrite.url": lambda url: params(defaults={"evolve": {"rewrite": {"url": url}}}),
    "rounds.r1.evolve.rewrite.url": lambda url: params(
        rounds={"r1": entry(evolve=plain(EvolveParams()) | {"rewrite": plain(RewriteParams()) | {"url": url}})}
    ),
    "envs.custom.judge.url": lambda url: params(envs={"shop": {}, "custom": {"judge": {"url": url}}}),
    "envs.tau2.url": lambda url: params(envs={"shop": {}, "tau2": {"url": url}}),
    "starts.r0.policy.url": lambda url: params(starts=start(kind="endpoint", url=url, model="m")),
    "starts.r0.policy.serve.url": lambda url: params(starts=start(kind="hf", serve={"url": url})),
}


@pytest.mark.parametrize("key", URLS)
def test_a_server_is_an_http_url_or_none_where_it_may_be(key):
    wrong = ("foo", "ftp://x", "localhost:8000/v1", "http://", "https:///v1", " http://x", "http://x y")
    needed = key == "starts.r0.policy.url"
    for url in ("http://localhost:8000/v1", "https://[::1]:8000", "https://a.b", *([] if needed else [""])):
        parse_params(URLS[key](url))
    for url in (*wrong, *([""] if needed else [])):
        with pytest.raises(ParamError, match="http://localhost:8000/v1") as error:
            parse_params(URLS[key](url))
        assert (error.value.thing, error.value.value) == (key, url or "empty")
        assert ("'' for none" in error.value.remedy) is not needed


def test_yaml_numbers_in_exponent_form_are_numbers(tmp_path):
    (tmp_path / "params.yaml").write_text("defaults: {train: {lr: 1e-4}}\n")
    assert load_params(tmp_path / "params.yaml").defaults.train.lr == 1e-4


@pytest.mark.parametrize(
    "text", ["run: [", "3", "- a", "run: {}\nflow: {}\nrun: {}", "run: 'x", "\0", "run: 2001-99-99"]
)
def test_a_file_that_is_no_parameters_is_one_error(tmp_path, text):
    """In our words: nothing of the text around, no advice of the library that reads it."""
    (tmp_path / "params.yaml").write_text(text)
    with pytest.raises(ParamError) as error:
        load_params(tmp_path / "params.yaml")
    assert str(error.value).count("\n") == 1 and "http" not in str(error.value)
    assert "line 3: found duplicate key" in str(error.value) or text.count("run") < 2


def _of_params(*kinds):
    """Those models and all that their fields hold."""
    for kind in kinds:
        yield kind
        for hint in (field.annotation for field in kind.model_fields.values()):
            parts = (part for part in (hint, *get_args(hint)) if isinstance(part, type))
            yield from _of_params(*(part for part in parts if issubclass(part, Settings)))


SECTIONS = dict.fromkeys(("collect", "diagnose", "evolve", "train", "evaluate"), {})
NEEDED = {"env": "e", "parent": "p", "policy": {}, "url": "http://a", "model": "m", "user": "u", "id": "i", **SECTIONS}
NEEDED["turns"] = [{"user": "u"}]
KINDS = {*_of_params(RunParams, FlowParams, Start, Round, Defaults, *POLICIES.values(), *ENVS.values(), TaskEntry)}


@pytest.mark.parametrize("kind", sorted(KINDS, key=lambda kind: kind.__name__))
def test_a_remedy_holds_no_word_of_python(kind):
    words = r"\binf\b|Literal|\bAny\b|typing|[a-z](Params|Entry)\b|[Ii]nput|\b(tuple|dict|pattern)\b"
    needed = {name: NEEDED[name] for name, field in kind.model_fields.items() if field.is_required()}
    read(kind, needed, "x")
    for name in kind.model_fields:
        for value in ("x y", [], [[]], {}, {"": -1}, {3: 3}, 3, None, -(10**9), -1e9, 1e99, float("nan"), True):
            try:
                read(kind, {**needed, name: value}, "x")
            except ParamError as error:
                assert error.thing.startswith(f"x.{name}")
                assert not re.search(words, error.remedy), error


@pytest.mark.parametrize("kind", sorted(KINDS, key=lambda kind: kind.__name__))
def test_every_field_is_described(kind):
    assert kind.__doc__
    for name, field in kind.model_fields.items():
        assert field.description and field.description.endswith((".", ")")), f"{kind.__name__}.{name}"


@pytest.mark.parametrize("key", ["partial_credit", "curriculum"])
def test_a_setting_that_is_gone_is_read_where_it_was_off(key):
    off = entry(train=plain(TrainParams()) | {key: 0.0})
    assert plain(parse_params(params(rounds={"r1": off})).rounds["r1"]) == off
    with pytest.raises(ParamError, match="remove it") as error:
        parse_params(params(rounds={"r1": entry(train=plain(TrainParams()) | {key: 0.5})}))
    assert (error.value.thing, error.value.value) == (f"rounds.r1.train.{key}", 0.5)


def test_a_complete_entry_without_a_key_of_later_means_what_it_meant():
    section = plain(TrainParams(), short=True)
    del section["negative"], section["loss"]
    found = parse_params(params(rounds={"r1": entry(train=section)})).rounds["r1"].train
    assert (found.negative, found.loss, found.normalise) == (1.0, "dapo", True)
    assert read(TrainParams, section, "x").loss == "cispo"


def test_no_file_is_one_error(tmp_path):
    with pytest.raises(ParamError, match="inside a SEAL workspace"):
        load_params(tmp_path / "params.yaml")


KEYS = st.sampled_from(["lr", "steps", "clip", "utility", "gate", "tasks"])
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3)


@given(st.recursive(LEAVES, lambda v: st.lists(v, max_size=3) | st.dictionaries(KEYS, v, max_size=3), max_leaves=8))
def test_anything_at_all_reads_or_is_a_param_error(value):
    for kind in (TrainParams, EvolveParams):
        try:
            found = read(kind, value, "x")
        except ParamError as error:
            assert error.thing.startswith("x")
        else:
            assert read(kind, plain(found), "x", complete=True) == found
