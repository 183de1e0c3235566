"""Compliance: financial document review over extraction, field-mapping and rule-engine tools.

Its rules (37 facts the bare docs do not tell) are more about form and order than the shop's: every kind of record but
plain documents is written with a prefix of its own, extraction returns the id that four other tools work on, and a
sign-off stands at the end of extract, map, run the rule.
"""

from typing import Any

from seal.env.domain import Domain, Slot, Tool
from seal.env.domain_env import DomainEnv

DOCUMENT = Slot("document", entity="document")
INVOICE = Slot("invoice", entity="invoice")
ACCOUNT = Slot("account", entity="account", prefix="AC-")
PAYMENT = Slot("payment", entity="payment", prefix="TX-")
CONTRACT = Slot("contract", entity="contract", prefix="REF-")


def _choice(name: str, **codes: str) -> Slot:
    return Slot(name, choices=codes)


COMPLIANCE = Domain(
    "compliance",
    (
        Tool(
            "extract_table",
            "extract",
            (DOCUMENT,),
            writes=False,
            returns="invoice",
            templates=("please extract document {id}",),
        ),
        Tool("map_field", "map", (INVOICE,), templates=("map document {id} please",)),
        Tool("run_rule", "validate", (INVOICE,), needs="map_field", templates=("validate document {id}",)),
        Tool(
            "sign_off",
            "sign",
            (INVOICE, _choice("level", partial="K4", full="K9")),
            needs="run_rule",
            templates=("{level} sign of document {id}",),
        ),
        Tool(
            "post_value",
            "post",
            (INVOICE, _choice("field", net="K11", gross="K2", total="K7")),
            needs="map_field",
            templates=("post the {field} of document {id}",),
        ),
        Tool(
            "set_currency",
            "convert",
            (DOCUMENT, _choice("currency", euro="K1", dollar="K8", yen="K5", pound="K12")),
            templates=("convert document {id} to {currency}", "in {currency} please convert document {id}"),
        ),
        Tool("open_review", "review", (DOCUMENT,), writes=False, templates=("review document {id}",)),
        Tool(
            "file_report",
            "report",
            (DOCUMENT, _choice("kind", annual="K7", monthly="K1", daily="K9")),
            role="open_review",
            templates=("{kind} report on document {id}", "report on document {id} it is {kind}"),
        ),
        Tool(
            "route_ticket",
            "route",
            (DOCUMENT, _choice("team", legal="K10", billing="K4", safety="K6")),
            templates=("route document {id} to {team}", "let {team} see it route document {id}"),
        ),
        Tool("check_identity", "identify", (ACCOUNT,), writes=False, templates=("identify account {id} please",)),
        Tool(
            "freeze_account",
            "freeze",
            (ACCOUNT, _choice("period", day="K2", week="K7", month="K10")),
            role="check_identity",
            templates=("freeze account {id} for a {period}",),
        ),
        Tool(
            "assign_risk",
            "classify",
            (ACCOUNT, _choice("risk", high="K12", normal="K5", low="K3")),
            templates=("classify account {id} it is {risk}",),
        ),
        Tool(
            "flag_payment",
            "flag",
            (PAYMENT, _choice("reason", fraud="K3", urgent="K11", late="K8")),
            templates=("flag payment {id} it is {reason}", "i see {reason} so flag payment {id}"),
        ),
        Tool(
            "pull_record",
            "pull",
            (PAYMENT,),
            writes=False,
            templates=("pull payment {id}", "i want to pull payment {id}"),
        ),
        Tool("scan_document", "scan", (CONTRACT,), templates=("scan contract {id}", "can you scan contract {id}")),
        Tool("close_case", "close", (CONTRACT,), templates=("close contract {id}", "please close contract {id} now")),
    ),
    fillers=tuple("hello thanks again my dog likes the sky and we had rain all of today so much".split()),
)


class ComplianceEnv(DomainEnv):
    max_steps_per_turn = 8  # a sign-off takes four calls, and a refusal on the way is not the end

    def __init__(self, **options: Any):
        super().__init__(COMPLIANCE, **options)
