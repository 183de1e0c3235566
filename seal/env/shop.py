"""Shop: e-commerce support over orders, shipments and customers' wishes.

Its rules (35 facts the bare docs do not tell): codes for words, legacy id prefixes, checks before money moves,
approvals for discounts, shipment ids that only a lookup tells.
"""

from typing import Any

from seal.env.domain import domain_named
from seal.env.domain_env import DomainEnv

SHOP = domain_named("shop")


class ShopEnv(DomainEnv):
    def __init__(self, **options: Any):
        super().__init__(SHOP, **options)
