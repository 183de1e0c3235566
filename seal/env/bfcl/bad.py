"""Tasks whose reference is wrong or whose wording leaves the answer open: kept, scored as officially, told apart."""

from types import MappingProxyType

_WITHHELD = "the reference of turn 1 uses tail, which is withheld until turn 3"
_FULL_STOP = "a message is compared exactly, but the request leaves its final full stop open"
_NO_ID = "the reference closes a ticket whose id no message and no result tells, as text where a number is declared"

KNOWN_BAD = MappingProxyType(
    {
        "multi_turn_miss_func_49": _WITHHELD,
        **{f"multi_turn_{name}_173": _NO_ID for name in ("base", "miss_func", "miss_param", "long_context")},
        **{f"multi_turn_{name}_184": _FULL_STOP for name in ("base", "miss_func", "miss_param", "long_context")},
    }
)
