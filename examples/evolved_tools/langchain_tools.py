"""The same tools for a LangChain agent (`create_agent(model, tools)`, `model.bind_tools(tools)`)."""

from pathlib import Path

from langchain_core.tools import tool
from shop_tools import issue_refund, verify_buyer

from seal.integrations.langchain import evolve_tools
from seal.interface.state import load_interface

interface = load_interface(Path(__file__).with_name("interface.json"))
tools = evolve_tools([tool(f, parse_docstring=True) for f in (issue_refund, verify_buyer)], interface)

refund = {tool.name: tool for tool in tools}["issue_refund"]
print(refund.description)
print(refund.args["reason"])
call = {"type": "tool_call", "id": "1", "name": "issue_refund", "args": {"order": "7", "reason": "late"}}
print(refund.invoke(call))
