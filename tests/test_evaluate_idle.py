"""What doing nothing scores stands beside every score of tau2, and nowhere else."""

from evaluations import evaluated, started
from tau2_cases import env

from seal.commands.round import scores_line
from seal.env import load_env
from seal.evaluate.do_nothing import do_nothing
from seal.evaluate.metrics import metrics
from seal.interface.state import InterfaceState
from seal.policy.scripted import GoldPolicy, ReplayPolicy
from seal.report.rounds import Round
from seal.report.tables import do_nothing_scores
from seal.settings.play import EvaluateParams

PARAMS = EvaluateParams(split="test", context=10**6)


def test_a_policy_that_does_nothing_scores_what_is_told():
    environment = env("airline")
    line = started(environment, ReplayPolicy({}, "qwen_xml"), PARAMS)
    nothing = line.metrics["do_nothing"]
    assert line.metrics["strict"]["mean"] == nothing["mean"] == nothing["by_category"]["airline"] > 0
    assert nothing["n"] == 20 and f"doing nothing {100 * nothing['mean']:.1f}" in scores_line(line.metrics)


def test_it_stands_in_the_table(tmp_path):
    environment = env("telecom", "solo")
    evaluation = evaluated(environment, GoldPolicy("qwen_xml"), InterfaceState(), PARAMS)
    scores = metrics(evaluation, environment.tasks()) | do_nothing(environment, evaluation)
    assert scores["strict"]["mean"] == 1.0 and scores["do_nothing"]["mean"] == 0.0 and scores["do_nothing"]["n"] == 40
    assert do_nothing_scores([Round("r0", "", 0, tmp_path, scores, InterfaceState())]) == [
        "doing nothing scores: r0 0.0 of 40"
    ]


def test_elsewhere_it_is_not_told():
    shop = load_env("shop", train=1, dev=0, test=2)
    evaluation = evaluated(shop, GoldPolicy(), InterfaceState(), PARAMS)
    assert do_nothing(shop, evaluation) == {}
