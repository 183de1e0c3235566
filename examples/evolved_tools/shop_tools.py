"""Two tools of a shop, whose docs keep quiet about what they refuse. The other files put the interface around them."""

VERIFIED: set[str] = set()


def verify_buyer(order: str) -> str:
    """Check who the buyer of an order is.

    Args:
        order: id of the order
    """
    VERIFIED.add(order)
    return f"buyer of {order} verified"


def issue_refund(order: str, reason: str) -> str:
    """Give money back for an order.

    Args:
        order: id of the order
        reason: why
    """
    if order not in VERIFIED:
        raise RuntimeError("refused: not yet allowed")
    if reason not in ("K3", "K7"):
        raise ValueError(f"invalid reason {reason!r}")
    return f"refunded {order}"
