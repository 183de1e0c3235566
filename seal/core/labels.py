"""The failure vocabulary: one enum, its default priority, its utilities.

Sources: SEAL (arXiv 2605.24426) Table 5 (taxonomy), Table 6 (utilities rho); the labels the paper lacks take the
values of DEFAULT_UTILITY below. Table 5 has invalid_tool_call, argument_mismatch, state_mismatch, recovery_failure,
missing_tool_call and response_mismatch. The published code (Table 6) has spurious_tool_call, correct_abstention,
state_mismatch, response_mismatch, pass and checker_error by these names, missing_tool_call as
empty_turn_model_response and gold_error as gt_error.
"""

from enum import StrEnum


class Label(StrEnum):
    INVALID_TOOL_CALL = "invalid_tool_call"
    ARGUMENT_MISMATCH = "argument_mismatch"
    CONSTRAINT_VIOLATION = "constraint_violation"
    RECOVERY_FAILURE = "recovery_failure"
    SPURIOUS_TOOL_CALL = "spurious_tool_call"
    MISSING_TOOL_CALL = "missing_tool_call"
    STATE_MISMATCH = "state_mismatch"
    RESPONSE_MISMATCH = "response_mismatch"
    BUDGET_EXHAUSTED = "budget_exhausted"
    CORRECT_ABSTENTION = "correct_abstention"
    PASS = "pass"
    ENV_ERROR = "env_error"
    GOLD_ERROR = "gold_error"
    CHECKER_ERROR = "checker_error"
    USER_SIM_ERROR = "user_sim_error"


DEFAULT_PRIORITY: tuple[Label, ...] = (
    Label.INVALID_TOOL_CALL,
    Label.ARGUMENT_MISMATCH,
    Label.CONSTRAINT_VIOLATION,
    Label.RECOVERY_FAILURE,
    Label.SPURIOUS_TOOL_CALL,
    Label.MISSING_TOOL_CALL,
    Label.STATE_MISMATCH,
    Label.RESPONSE_MISMATCH,
    Label.BUDGET_EXHAUSTED,
)
FAILURES = frozenset(DEFAULT_PRIORITY)
SUCCESSES = frozenset({Label.PASS, Label.CORRECT_ABSTENTION})
NOT_THE_POLICY = frozenset({Label.ENV_ERROR, Label.GOLD_ERROR, Label.CHECKER_ERROR, Label.USER_SIM_ERROR})

DEFAULT_UTILITY: dict[Label, float] = {
    Label.SPURIOUS_TOOL_CALL: 2.0,  # Table 6
    Label.CORRECT_ABSTENTION: 1.8,  # Table 6
    Label.STATE_MISMATCH: 1.0,  # Table 6
    Label.PASS: 1.0,  # Table 6
    Label.RESPONSE_MISMATCH: 0.9,  # Table 6
    Label.MISSING_TOOL_CALL: 1.5,  # Table 6 calls it empty_turn_model_response
    Label.INVALID_TOOL_CALL: 2.0,
    Label.ARGUMENT_MISMATCH: 1.6,
    Label.CONSTRAINT_VIOLATION: 1.4,
    Label.RECOVERY_FAILURE: 1.2,
    Label.BUDGET_EXHAUSTED: 1.0,
}
