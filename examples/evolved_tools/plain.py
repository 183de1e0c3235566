"""Tools of a plain Python agent; `client.chat.completions.create(tools=tools.schemas(), ...)` asks for the calls."""

from pathlib import Path

from shop_tools import issue_refund, verify_buyer

from seal.integrations.functions import PlainTools
from seal.interface.state import load_interface

interface = load_interface(Path(__file__).with_name("interface.json"))  # of a round: data/rounds/<id>/interface.json
tools = PlainTools([issue_refund, verify_buyer], interface)

print(tools.schemas()[0]["function"]["description"])
print(tools.guide.hints())
for name, arguments in (
    ("issue_refund", {"order": "7", "reason": "late"}),  # what a model asks for
    ("verify_buyer", {"order": "7"}),
    ("issue_refund", {"order": "7", "reason": "late"}),
    ("issue_refund", {"order": "7", "reason": "K7"}),
    ("verfy_buyer", '{"order": "8"}'),
):
    print(name, "->", tools.call(name, arguments))
