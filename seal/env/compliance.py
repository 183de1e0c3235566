"""Compliance: financial document review over extraction, field-mapping and rule-engine tools.

Its rules (37 facts the bare docs do not tell) are more about form and order than the shop's: every kind of record but
plain documents is written with a prefix of its own, extraction returns the id that four other tools work on, and a
sign-off stands at the end of extract, map, run the rule.
"""

from typing import Any

from seal.env.domain import domain_named
from seal.env.domain_env import DomainEnv

COMPLIANCE = domain_named("compliance")


class ComplianceEnv(DomainEnv):
    max_steps_per_turn = 8  # a sign-off takes four calls, and a refusal on the way is not the end

    def __init__(self, **options: Any):
        super().__init__(COMPLIANCE, **options)
