"""The same tools for an AutoGen agent: `AssistantAgent(name, model_client, tools=evolve_tools(...))`."""

import asyncio
from pathlib import Path

from autogen_core.tools import FunctionTool, StaticWorkbench
from shop_tools import issue_refund, verify_buyer

from seal.integrations.autogen import evolve_tools
from seal.interface.state import load_interface


async def main() -> None:
    interface = load_interface(Path(__file__).with_name("interface.json"))
    bare = [FunctionTool(issue_refund, "Give money back."), FunctionTool(verify_buyer, "Check who the buyer is.")]
    tools = evolve_tools(bare, interface)
    print(tools[0].schema)
    print(await StaticWorkbench(tools).call_tool("issue_refund", {"order": "7", "reason": "late"}))


asyncio.run(main())
