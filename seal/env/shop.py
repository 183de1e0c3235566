"""Shop: e-commerce support over orders, shipments and customers' wishes.

Its rules (35 facts the bare docs do not tell): codes for words, legacy id prefixes, checks before money moves,
approvals for discounts, shipment ids that only a lookup tells.
"""

from typing import Any

from seal.env.domain import Domain, Slot, Tool
from seal.env.domain_env import DomainEnv

ORDER = Slot("order", entity="order")
LEGACY = Slot("order", entity="order", prefix="ORD-")
EXPORT = Slot("order", entity="order", prefix="EU-")
SHIPMENT = Slot("shipment", entity="shipment")


def _choice(name: str, **codes: str) -> Slot:
    return Slot(name, choices=codes)


SHOP = Domain(
    "shop",
    (
        Tool("find_order", "find", (ORDER,), writes=False, returns="shipment", templates=("please find order {id}",)),
        Tool("verify_buyer", "verify", (ORDER,), writes=False),
        Tool("inspect_item", "inspect", (ORDER,), writes=False, templates=("can you inspect order {id}",)),
        Tool("approve_case", "approve", (ORDER,), writes=False),
        Tool(
            "issue_refund",
            "refund",
            (LEGACY, _choice("reason", damaged="K3", late="K7", wrong="K1", lost="K9")),
            needs="verify_buyer",
            templates=("refund order {id} it came {reason}", "i want a refund for {reason} order {id}"),
        ),
        Tool(
            "swap_item",
            "exchange",
            (ORDER, _choice("size", small="K5", medium="K2", large="K8")),
            needs="inspect_item",
            templates=("exchange order {id} for size {size}", "a {size} one in exchange for order {id}"),
        ),
        Tool("stop_order", "cancel", (EXPORT,), templates=("cancel order {id}", "please cancel my order {id}")),
        Tool(
            "set_address",
            "move",
            (ORDER, _choice("zone", north="K4", south="K11", east="K6", west="K2")),
            role="verify_buyer",
            templates=("move order {id} to the {zone}", "i moved {zone} so move order {id}"),
        ),
        Tool(
            "send_parcel",
            "send",
            (LEGACY, _choice("carrier", rail="K10", air="K1", road="K5"), _choice("speed", fast="K12", slow="K3")),
            templates=("send order {id} by {carrier} and {speed}", "send it {speed} by {carrier} order {id}"),
        ),
        Tool("track_parcel", "track", (SHIPMENT,), writes=False, templates=("track order {id} please",)),
        Tool(
            "hold_parcel",
            "hold",
            (SHIPMENT, _choice("span", day="K6", week="K4")),
            templates=("hold the parcel of order {id} for a {span}",),
        ),
        Tool(
            "give_discount",
            "discount",
            (ORDER, _choice("tier", bronze="K8", silver="K12", gold="K10")),
            role="approve_case",
            templates=("a {tier} discount on order {id}", "i am {tier} give discount for order {id}"),
        ),
        Tool(
            "call_team",
            "escalate",
            (ORDER, _choice("team", legal="K7", billing="K2", safety="K9")),
            templates=("escalate order {id} to {team}", "let {team} see it escalate order {id}"),
        ),
        Tool(
            "wrap_gift",
            "wrap",
            (ORDER, _choice("paper", red="K11", blue="K5", green="K3")),
            templates=("wrap order {id} in {paper}", "in {paper} paper wrap order {id}"),
        ),
        Tool("print_label", "label", (ORDER,), templates=("print a label for order {id}",)),
    ),
    fillers=tuple("hello thanks again my dog likes the sky and we had rain all of today so much".split()),
)


class ShopEnv(DomainEnv):
    def __init__(self, **options: Any):
        super().__init__(SHOP, **options)
