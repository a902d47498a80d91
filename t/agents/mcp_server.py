#!/usr/bin/env python3
"""An MCP server with one tool, over its standard input and output, for
mcp.t: a message of JSON-RPC a line."""

import json
import sys

TOOL = {"name": "colour", "description": "The colour of a thing.",
        "inputSchema": {"type": "object", "required": ["of"],
                        "properties": {"of": {"type": "string"}}}}


def result(method, params):
    if method == "initialize":
        return {"protocolVersion": params["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "paint", "version": "1"}}
    if method == "tools/list":
        return {"tools": [TOOL]}
    if method == "tools/call":
        said = f"{params['arguments']['of']} is lilac"
        return {"content": [{"type": "text", "text": said}]}
    return {}


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message and "method" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"],
                          "result": result(message["method"],
                                           message.get("params") or {})}),
              flush=True)
