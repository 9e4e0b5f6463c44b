"""What the Messages API refuses.

check_request() looks at one request alone and yields problems; the first one
is what the server answers.  class History compares a request with what was
sent and received before it.  Sources: reference/messages-api.md sections
1.1 to 1.10, 3.2, 3.7 and 4.3; texts follow the documented fragments.
"""

import base64
import json
import re
import struct

import rawjson

CLIENT_BLOCKS = "tool_use"
MIB = 1 << 20
BODY_MAX = 32 * MIB
EFFORTS = ("low", "medium", "high", "xhigh", "max")

# id: (max output, thinking types, effort levels, mid-conversation system)
ALL = EFFORTS
MODELS = {
    "claude-fable-5-2": (128000, ("adaptive",), ALL, True),
    "claude-fable-5-1": (128000, ("adaptive",), ALL, True),
    "claude-fable-5": (128000, ("adaptive",), ALL, True),
    "claude-mythos-5-2": (128000, ("adaptive",), ALL, True),
    "claude-opus-5-5": (128000, ("adaptive",), ALL, True),
    "claude-opus-5": (128000, ("adaptive", "disabled"), ALL, True),
    "claude-opus-4-8": (128000, ("adaptive",), ALL, True),
    "claude-opus-4-7": (128000, ("adaptive",), ALL, False),
    "claude-opus-4-6": (128000, ("adaptive", "enabled", "disabled"),
                        ("low", "medium", "high", "max"), False),
    "claude-opus-4-5": (64000, ("enabled", "disabled"),
                        ("low", "medium", "high"), False),
    "claude-sonnet-5-5": (128000, ("adaptive", "between_tools"), ALL, True),
    "claude-sonnet-5": (128000, ("adaptive", "disabled"), ALL, False),
    "claude-sonnet-4-6": (128000, ("adaptive", "enabled", "disabled"),
                          ("low", "medium", "high", "max"), False),
    "claude-sonnet-4-5": (64000, ("enabled", "disabled"), (), False),
    "claude-haiku-5-5": (128000, ("adaptive", "disabled"), ALL, True),
    "claude-haiku-4-5": (64000, ("enabled", "disabled"), (), False),
}
SAMPLING_OK = ("claude-opus-4-6", "claude-opus-4-5", "claude-sonnet-4-6",
               "claude-sonnet-4-5", "claude-haiku-4-5")
FORCED_REFUSED = ("claude-opus-5-5", "claude-sonnet-5-5", "claude-fable-5-1",
                  "claude-fable-5-2", "claude-mythos-5-2")

BETAS = {
    "context-management-2025-06-27", "compact-2026-01-12",
    "interleaved-thinking-2025-05-14", "effort-2025-11-24",
    "oauth-2025-04-20", "prompt-caching-2024-07-31",
    "extended-cache-ttl-2025-04-11", "context-1m-2025-08-07",
    "task-budgets-2026-03-13", "fine-grained-tool-streaming-2025-05-14",
    "mid-conversation-output-config-2026-07-01",
    "thinking-binding-controls-2026-08-01",
}

TOP = {
    "model", "max_tokens", "messages", "system", "tools", "tool_choice",
    "thinking", "output_config", "stream", "stop_sequences", "cache_control",
    "diagnostics", "metadata", "service_tier", "speed", "inference_geo",
    "container", "temperature", "top_p", "top_k",
}
BLOCK_FIELDS = {
    "text": {"text", "citations"},
    "image": {"source", "transformations"},
    "document": {"source", "title", "context", "citations"},
    "search_result": {"source", "title", "content", "citations"},
    "tool_use": {"id", "name", "input", "caller", "toolset_name"},
    "tool_result": {"tool_use_id", "content", "is_error", "toolset_name"},
    "thinking": {"thinking", "signature"},
    "redacted_thinking": {"data"},
    "server_tool_use": {"id", "name", "input", "caller"},
    "web_search_tool_result": {"tool_use_id", "content", "caller"},
    "web_fetch_tool_result": {"tool_use_id", "content", "caller"},
    "container_upload": {"file_id"},
}
REQUIRED = {
    "text": ("text",), "image": ("source",), "document": ("source",),
    "search_result": ("source", "title", "content"),
    "tool_use": ("id", "name", "input"), "tool_result": ("tool_use_id",),
    "thinking": ("thinking", "signature"), "redacted_thinking": ("data",),
    "server_tool_use": ("id", "name", "input"),
    "container_upload": ("file_id",),
}
USER_BLOCKS = {"text", "image", "document", "search_result", "tool_result",
               "container_upload"}
RESULT_BLOCKS = {"text", "image", "document", "search_result",
                 "tool_reference"}
NO_MARK = {"thinking", "redacted_thinking"}
TOOL_FIELDS = {
    "name", "description", "input_schema", "type", "cache_control", "strict",
    "eager_input_streaming", "defer_loading", "input_examples",
    "allowed_callers",
}
SERVER_TOOL = re.compile(
    r"(web_search|web_fetch|code_execution|bash|text_editor|memory|"
    r"tool_search_tool_regex|tool_search_tool_bm25)_\d{8}$")
SCHEMA_TYPES = {"object", "array", "string", "number", "integer", "boolean",
                "null"}


class Refused(Exception):
    """The answer to a request that breaks a rule."""

    def __init__(self, message, status=400, type_="invalid_request_error"):
        super().__init__(message)
        self.message = message
        self.status = status
        self.type = type_


def model_row(name):
    """The table row of a model id, dated ids and [1m] included."""
    name = re.sub(r"\[1m\]$", "", name)
    if name in MODELS:
        return MODELS[name]
    return MODELS.get(re.sub(r"-\d{8}$", "", name))


def base_model(name):
    name = re.sub(r"\[1m\]$", "", name)
    return name if name in MODELS else re.sub(r"-\d{8}$", "", name)


# ---- headers -------------------------------------------------------------

def check_headers(headers, opts):
    """headers: list of (lower-case name, value)."""
    got = {}
    for name, value in headers:
        if name in got and name not in ("anthropic-beta",):
            yield Refused("header sent twice: " + name)
        got[name] = value
    key = got.get("x-api-key")
    auth = got.get("authorization")
    if key is None and auth is None:
        yield Refused("x-api-key header is required", 401,
                      "authentication_error")
    if key is not None and opts.key is not None and key != opts.key:
        yield Refused("invalid x-api-key", 401, "authentication_error")
    if key is None and auth is not None and opts.key is not None \
            and auth != "Bearer " + opts.key:
        yield Refused("invalid bearer token", 401, "authentication_error")
    if auth is not None and not auth.startswith(("Bearer ", "Basic ")):
        yield Refused("authorization: unknown scheme", 401,
                      "authentication_error")
    version = got.get("anthropic-version")
    if version is None:
        yield Refused("anthropic-version: header is required")
    elif version not in ("2023-06-01", "2026-10-21"):
        yield Refused("anthropic-version: unknown version " + version)
    ctype = got.get("content-type", "")
    if ctype.split(";")[0].strip().lower() != "application/json":
        yield Refused("content-type must be application/json, not '%s'"
                      % ctype)
    agent = got.get("user-agent", "")
    if not agent:
        yield Refused("user-agent: header is required")
    if re.search(r"claude-cli|claude-code|anthropic-sdk|anthropic/", agent,
                 re.I):
        yield Refused("user-agent pretends to be another client: " + agent)
    for name in got:
        if name.startswith("x-stainless-") or name == "x-app":
            yield Refused("header of another client: " + name)
    if "accept-encoding" in got and got["accept-encoding"] != "identity":
        yield Refused("accept-encoding asked for, but no client decodes it")
    for name, value in headers:
        if name != "anthropic-beta":
            continue
        for beta in value.split(","):
            if beta.strip() not in BETAS | opts.betas:
                yield Refused("Unexpected value(s) `%s` for the "
                              "`anthropic-beta` header" % beta.strip())


# ---- one request ---------------------------------------------------------

def check_request(body, opts, known_types=()):
    """body: rawjson.Raw of the request.  Yields Refused, worst first."""
    req = body.value
    if not isinstance(req, dict):
        yield Refused("body: Input should be an object")
        return
    try:
        yield from _check_top(body, req, opts)
        yield from _check_tools(req)
        yield from _check_system(req)
        yield from _check_messages(req, opts, known_types)
        yield from _check_marks(req, known_types)
    except (KeyError, TypeError, AttributeError, IndexError) as e:
        yield Refused("malformed request (%s: %s)" % (type(e).__name__, e))


def _extra(obj, allowed, where):
    for key in obj:
        if key not in allowed:
            yield Refused("%s%s: Extra inputs are not permitted"
                          % (where, key))


def _check_top(body, req, opts):
    keys = [k for k, _ in body.members()]
    for k in keys:
        if keys.count(k) > 1:
            yield Refused("%s: key given twice" % k)
            break
    yield from _extra(req, TOP | opts.fields, "")
    for k in ("model", "max_tokens", "messages"):
        if k not in req:
            yield Refused("%s: Field required" % k)
            return
    model = req["model"]
    if not isinstance(model, str) or not model:
        yield Refused("model: Input should be a valid string")
        return
    row = model_row(model)
    if row is None:
        if model not in opts.models:
            yield Refused("model: " + model, 404, "not_found_error")
        row = (128000, ("adaptive", "enabled", "disabled"), EFFORTS, False)
    yield from _check_numbers(req, row)
    if "stream" in req and not isinstance(req["stream"], bool):
        yield Refused("stream: Input should be a valid boolean")
    for k in ("temperature", "top_p", "top_k"):
        if k in req and base_model(model) not in SAMPLING_OK:
            yield Refused("`%s` is not supported for this model" % k)
    yield from _check_thinking(req, row)
    yield from _check_choice(req)
    stops = req.get("stop_sequences", [])
    if not isinstance(stops, list) or any(
            not isinstance(s, str) or not s.strip() for s in stops):
        yield Refused("stop_sequences: each stop sequence must contain "
                      "non-whitespace")
    if "metadata" in req:
        yield from _extra(req["metadata"], {"user_id"}, "metadata.")
    if req.get("service_tier", "auto") not in ("auto", "standard_only"):
        yield Refused("service_tier: Input should be 'auto' or "
                      "'standard_only'")


def _check_numbers(req, row):
    n = req["max_tokens"]
    if isinstance(n, bool) or not isinstance(n, int):
        yield Refused("max_tokens: Input should be a valid integer")
    elif n < 0 or (n == 0 and req.get("stream")):
        yield Refused("max_tokens: Input should be greater than 0")
    elif n > row[0]:
        yield Refused("max_tokens: %d > %d, which is the maximum allowed "
                      "number of output tokens for %s"
                      % (n, row[0], req["model"]))
    elif not req.get("stream") and n > 21333:
        yield Refused("streaming is required for operations that may take "
                      "longer than 10 minutes")


def _check_thinking(req, row):
    thinking = req.get("thinking")
    effort = req.get("output_config", {}).get("effort")
    yield from _extra(req.get("output_config", {}), {"effort", "format"},
                      "output_config.")
    if effort is not None and effort not in row[2]:
        yield Refused("output_config.effort: '%s' is not supported for this "
                      "model" % effort)
    if thinking is None:
        return
    kind = thinking.get("type")
    allowed = {"type", "display"}
    if kind == "enabled":
        allowed.add("budget_tokens")
    yield from _extra(thinking, allowed, "thinking.")
    if kind not in row[1]:
        yield Refused('"thinking.type.%s" is not supported for this model'
                      % kind)
    if kind == "enabled":
        n = thinking.get("budget_tokens", 0)
        if n < 1024 or n >= req["max_tokens"]:
            yield Refused("thinking.budget_tokens: at least 1024 and less "
                          "than max_tokens")
    if kind in ("disabled", "between_tools") and effort in ("xhigh", "max"):
        yield Refused("thinking.type '%s' does not go with effort '%s'"
                      % (kind, effort))


def _check_choice(req):
    choice = req.get("tool_choice")
    if choice is None:
        return
    kind = choice.get("type")
    if kind not in ("auto", "any", "tool", "none"):
        yield Refused("tool_choice.type: unknown '%s'" % kind)
    if not req.get("tools"):
        yield Refused("tool_choice: may only be given together with tools")
    yield from _extra(choice, {"type", "name", "disable_parallel_tool_use"},
                      "tool_choice.")
    if kind in ("any", "tool") and base_model(req["model"]) in FORCED_REFUSED:
        yield Refused("tool_choice: forced tool use is not supported for "
                      "this model")


def _check_tools(req):
    tools = req.get("tools")
    if tools is None:
        return
    if not isinstance(tools, list):
        yield Refused("tools: Input should be a valid list")
        return
    names = set()
    for i, tool in enumerate(tools):
        where = "tools.%d." % i
        kind = tool.get("type", "custom")
        if kind != "custom":
            if not SERVER_TOOL.match(kind):
                yield Refused("%stype: unknown tool type '%s'"
                              % (where, kind))
            continue
        yield from _extra(tool, TOOL_FIELDS, where)
        name = tool.get("name")
        if not isinstance(name, str) or not re.fullmatch(
                r"[a-zA-Z0-9_-]{1,64}", name):
            yield Refused("%sname: String should match pattern "
                          "'^[a-zA-Z0-9_-]{1,64}$'" % where)
        if name in names:
            yield Refused("tools: Tool names must be unique.")
        names.add(name)
        if "description" in tool and (
                not isinstance(tool["description"], str)):
            yield Refused("%sdescription: Input should be a valid string"
                          % where)
        yield from _check_schema(tool.get("input_schema"),
                                 where + "input_schema", True)


def _check_schema(schema, where, top=False):
    if not isinstance(schema, dict):
        if isinstance(schema, bool) and not top:
            return
        yield Refused("%s: Input should be a valid dictionary" % where)
        return
    if top:
        if schema.get("type") != "object":
            yield Refused("%s.type: Input should be 'object'" % where)
        for k in ("oneOf", "allOf", "anyOf"):
            if k in schema:
                yield Refused("%s: input_schema does not support oneOf, "
                              "allOf, or anyOf at the top level" % where)
    types = schema.get("type", [])
    for t in types if isinstance(types, list) else [types]:
        if t not in SCHEMA_TYPES:
            yield Refused("%s.type: JSON schema is invalid: unknown type "
                          "'%s'" % (where, t))
    props = schema.get("properties", {})
    if not isinstance(props, dict):
        yield Refused("%s.properties: JSON schema is invalid" % where)
        return
    required = schema.get("required", [])
    if not isinstance(required, list) or len(set(required)) != len(required):
        yield Refused("%s.required: JSON schema is invalid" % where)
    elif props and not set(required) <= set(props):
        yield Refused("%s.required: names a property that is not there"
                      % where)
    if "enum" in schema and not (isinstance(schema["enum"], list)
                                 and schema["enum"]):
        yield Refused("%s.enum: JSON schema is invalid" % where)
    for name, sub in props.items():
        if not re.fullmatch(r"[a-zA-Z0-9_.-]{1,64}", name):
            yield Refused("%s.properties: Property keys should match pattern "
                          "'^[a-zA-Z0-9_.-]{1,64}$'" % where)
        yield from _check_schema(sub, "%s.properties.%s" % (where, name))
    if isinstance(schema.get("items"), (dict, bool)):
        yield from _check_schema(schema["items"], where + ".items")


def _check_system(req):
    system = req.get("system")
    if system is None or isinstance(system, str):
        return
    if not isinstance(system, list):
        yield Refused("system: Input should be a valid list")
        return
    for i, block in enumerate(system):
        if block.get("type") != "text":
            yield Refused("system.%d.type: Input should be 'text'" % i)
        yield from _extra(block, {"type", "text", "cache_control",
                                  "citations"}, "system.%d." % i)
        if not block.get("text", "").strip():
            yield Refused("system: text content blocks must be non-empty")
        if "Claude Code, Anthropic's official CLI" in block.get("text", ""):
            yield Refused("system: the identity line of another client")


def _check_messages(req, opts, known_types):
    messages = req["messages"]
    if not isinstance(messages, list) or not messages:
        yield Refused("messages: at least one message is required")
        return
    if len(messages) > 100000:
        yield Refused("messages: too many")
    row = model_row(req["model"])
    for i, m in enumerate(messages):
        where = "messages.%d." % i
        yield from _extra(m, {"role", "content"}, where)
        role = m.get("role")
        if role not in ("user", "assistant", "system"):
            yield Refused("%srole: Input should be 'user' or 'assistant'"
                          % where)
        if role == "system":
            yield from _check_system_role(messages, i, row)
        yield from _check_content(m, role, where, known_types)
    if messages[0].get("role") != "user":
        yield Refused("messages: first message must use the \"user\" role")
    if messages[-1].get("role") == "assistant" and not (
            opts.prefill or opts.history.paused()):
        yield Refused("This model does not support assistant message "
                      "prefill. The conversation must end with a user "
                      "message.")
    yield from _check_pairs(req, messages)


def _check_system_role(messages, i, row):
    if row is not None and not row[3]:
        yield Refused("messages.%d: role 'system' is not supported on this "
                      "model" % i)
    if i == 0:
        yield Refused("messages.0: role 'system' must not be first")
    elif messages[i - 1].get("role") != "user":
        yield Refused("messages.%d: role 'system' must follow a user "
                      "message" % i)
    if i + 1 < len(messages) and messages[i + 1].get("role") != "assistant":
        yield Refused("messages.%d: role 'system' must be last or be "
                      "followed by an assistant message" % i)


def _check_content(m, role, where, known_types):
    content = m.get("content")
    if isinstance(content, str):
        if not content.strip():
            yield Refused("%scontent: text content blocks must be non-empty"
                          % where)
        return
    if not isinstance(content, list):
        yield Refused("%scontent: Input should be a valid list" % where)
        return
    if not content:
        yield Refused("messages: all messages must have non-empty content "
                      "(%scontent)" % where)
    for j, block in enumerate(content):
        yield from _check_block(block, role, "%scontent.%d." % (where, j),
                                known_types)


def _check_block(block, role, where, known_types):
    if not isinstance(block, dict):
        yield Refused("%s: Input should be an object" % where)
        return
    kind = block.get("type")
    if kind not in BLOCK_FIELDS:
        if kind not in known_types:
            yield Refused("%stype: Input tag '%s' found using 'type' does "
                          "not match any of the expected tags"
                          % (where, kind))
        return
    if role != "assistant" and kind not in USER_BLOCKS:
        yield Refused("%stype: `%s` blocks may only be in assistant "
                      "messages" % (where, kind))
    if role == "assistant" and kind in ("tool_result", "image"):
        yield Refused("%stype: `%s` blocks may only be in user messages"
                      % (where, kind))
    yield from _extra(block, BLOCK_FIELDS[kind] | {"type", "cache_control"},
                      where)
    for key in REQUIRED.get(kind, ()):
        if key not in block:
            yield Refused("%s%s: Field required" % (where, key))
    if kind == "text":
        if not isinstance(block.get("text"), str):
            yield Refused("%stext: Input should be a valid string" % where)
        elif not block["text"].strip():
            yield Refused("%stext: text content blocks must be non-empty"
                          % where)
    elif kind in ("tool_use", "server_tool_use"):
        yield from _check_call(block, where)
    elif kind == "tool_result":
        yield from _check_result(block, where, known_types)
    elif kind == "image":
        yield from _check_image(block, where)
    elif kind == "thinking":
        if not isinstance(block.get("signature"), str) \
                or not block["signature"]:
            yield Refused("%ssignature: Field required" % where)


def _check_call(block, where):
    if not isinstance(block.get("input"), dict):
        yield Refused("%sinput: Input should be a valid dictionary" % where)
    if not re.fullmatch(r"[a-zA-Z0-9_-]+", str(block.get("id"))):
        yield Refused("%sid: String should match pattern "
                      "'^[a-zA-Z0-9_-]+$'" % where)
    if not re.fullmatch(r"[a-zA-Z0-9_.-]{1,200}", str(block.get("name"))):
        yield Refused("%sname: String should match pattern" % where)


def _check_result(block, where, known_types):
    content = block.get("content")
    if "is_error" in block and not isinstance(block["is_error"], bool):
        yield Refused("%sis_error: Input should be a valid boolean" % where)
    if content is None:
        return
    if isinstance(content, str):
        # The service takes "" here; a client that sends it has nothing to
        # say, which models take as a reason to try again.
        if not content.strip():
            yield Refused("%scontent: text content blocks must be non-empty"
                          % where)
        return
    if not content:
        yield Refused("%scontent: empty list" % where)
    for k, sub in enumerate(content):
        at = "%scontent.%d." % (where, k)
        if sub.get("type") not in RESULT_BLOCKS:
            yield Refused("%stype: not allowed in a tool_result" % at)
        elif sub["type"] != "tool_reference":
            yield from _check_block(sub, "user", at, known_types)
        if "cache_control" in sub:
            yield Refused("%scache_control: mark the tool_result instead"
                          % at)
        if block.get("is_error") and sub.get("type") != "text":
            yield Refused("%s: all content must be type \"text\" if "
                          "is_error is true" % at)


def _check_image(block, where):
    source = block.get("source", {})
    kind = source.get("type")
    if kind in ("url", "file"):
        return
    if kind != "base64":
        yield Refused("%ssource.type: unknown '%s'" % (where, kind))
        return
    media = source.get("media_type")
    try:
        data = base64.b64decode(source.get("data", ""), validate=True)
    except ValueError:
        yield Refused("%ssource.base64: invalid base64 data" % where)
        return
    if len(source["data"]) > 10 * MIB:
        yield Refused("%ssource.base64: image exceeds 10 MB maximum" % where)
    real, size = image_size(data)
    if real != media:
        yield Refused("%ssource.base64.data: The image was specified using "
                      "the %s media type, but the image appears to be a %s "
                      "image" % (where, media, real))
    elif max(size) > 8000:
        yield Refused("%ssource.base64.data: At least one of the image "
                      "dimensions exceed max allowed size: 8000 pixels"
                      % where)
    elif min(size) < 1:
        yield Refused("%ssource.base64.data: Could not process image" % where)


def image_size(data):
    """(media type or None, (width, height)) of the usual formats."""
    if data[:8] == b"\x89PNG\r\n\x1a\n" and len(data) >= 24:
        return "image/png", struct.unpack(">II", data[16:24])
    if data[:6] in (b"GIF87a", b"GIF89a") and len(data) >= 10:
        return "image/gif", struct.unpack("<HH", data[6:10])
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp", (1, 1)
    if data[:3] == b"\xff\xd8\xff":
        i = 2
        while i + 9 < len(data):
            if data[i] != 0xff:
                break
            mark, n = data[i + 1], struct.unpack(">H", data[i + 2:i + 4])[0]
            if 0xc0 <= mark <= 0xcf and mark not in (0xc4, 0xc8, 0xcc):
                h, w = struct.unpack(">HH", data[i + 5:i + 9])
                return "image/jpeg", (w, h)
            i += 2 + n
        return "image/jpeg", (1, 1)
    return None, (0, 0)


def merged(messages):
    """Runs of one role as one list of blocks: (role, [(where, block)])."""
    out = []
    for i, m in enumerate(messages):
        content = m.get("content")
        if isinstance(content, str):
            content = [{"type": "text", "text": content}]
        blocks = [("messages.%d.content.%d" % (i, j), b)
                  for j, b in enumerate(content or [])
                  if isinstance(b, dict)]
        if out and out[-1][0] == m.get("role") != "system":
            out[-1][1].extend(blocks)
        else:
            out.append((m.get("role"), blocks))
    return out


def _check_pairs(req, messages):
    turns = merged(messages)
    ids, used = set(), False
    for n, (role, blocks) in enumerate(turns):
        calls = [b["id"] for _, b in blocks if b.get("type") == "tool_use"] \
            if role == "assistant" else []
        used = used or bool(calls)
        for call in calls:
            if call in ids or calls.count(call) > 1:
                yield Refused("messages: `tool_use` ids must be unique (%s)"
                              % call)
            ids.add(call)
        if role == "assistant" and calls:
            follow = turns[n + 1][1] if n + 1 < len(turns) \
                and turns[n + 1][0] == "user" else []
            have = [b.get("tool_use_id") for _, b in follow
                    if b.get("type") == "tool_result"]
            missing = [c for c in calls if c not in have]
            if missing and n + 1 < len(turns):
                yield Refused(
                    "messages.%d: `tool_use` ids were found without "
                    "`tool_result` blocks immediately after: %s. Each "
                    "`tool_use` block must have a corresponding "
                    "`tool_result` block in the next message."
                    % (n, ", ".join(missing)))
        if role == "user":
            yield from _check_results_of(turns, n, blocks)
    if used and not req.get("tools"):
        yield Refused("Requests which include `tool_use` or `tool_result` "
                      "blocks in the messages must define tools.")


def _check_results_of(turns, n, blocks):
    before = [b["id"] for _, b in turns[n - 1][1]
              if b.get("type") == "tool_use"] \
        if n and turns[n - 1][0] == "assistant" else []
    seen, other = set(), False
    for where, b in blocks:
        if b.get("type") != "tool_result":
            other = True
            continue
        call = b.get("tool_use_id")
        if call not in before:
            yield Refused("%s: unexpected `tool_use_id` found in "
                          "`tool_result` blocks: %s. Each `tool_result` "
                          "block must have a corresponding `tool_use` block "
                          "in the previous message." % (where, call))
        elif call in seen:
            yield Refused("%s: each tool_use must have a single result. "
                          "Found multiple `tool_result` blocks with id: %s"
                          % (where, call))
        elif other:
            yield Refused("%s: `tool_result` blocks must come before other "
                          "content (%s)" % (where, call))
        seen.add(call)


def marks(req):
    """Every cache_control of a request in prompt order: (where, block)."""
    out = []
    for i, tool in enumerate(req.get("tools") or []):
        out.append(("tools.%d" % i, tool))
    if isinstance(req.get("system"), list):
        for i, block in enumerate(req["system"]):
            out.append(("system.%d" % i, block))
    for i, m in enumerate(req.get("messages") or []):
        if not isinstance(m.get("content"), list):
            continue
        for j, block in enumerate(m["content"]):
            where = "messages.%d.content.%d" % (i, j)
            out.append((where, block))
            if block.get("type") == "tool_result" \
                    and isinstance(block.get("content"), list):
                for k, sub in enumerate(block["content"]):
                    out.append(("%s.content.%d" % (where, k), sub))
    return [(w, b) for w, b in out
            if isinstance(b, dict) and "cache_control" in b]


def _check_marks(req, known_types):
    found = marks(req)
    n = len(found) + ("cache_control" in req)
    if n > 4:
        yield Refused("A maximum of 4 blocks with cache_control may be "
                      "provided. Found %d." % n)
    five = False
    for where, block in found:
        cc = block["cache_control"]
        if not isinstance(cc, dict) or cc.get("type") != "ephemeral":
            yield Refused("%s.cache_control.type: Input should be "
                          "'ephemeral'" % where)
            continue
        yield from _extra(cc, {"type", "ttl"}, where + ".cache_control.")
        ttl = cc.get("ttl", "5m")
        if ttl not in ("5m", "1h"):
            yield Refused("%s.cache_control.ttl: Input should be '5m' or "
                          "'1h'" % where)
        if ttl == "1h" and five:
            yield Refused("%s.cache_control.ttl: a ttl='1h' cache_control "
                          "block must not come after a ttl='5m' "
                          "cache_control block" % where)
        five = five or ttl == "5m"
        if block.get("type") in NO_MARK:
            yield Refused("%s.cache_control: Extra inputs are not permitted"
                          % where)
        if block.get("type") in known_types \
                and block.get("type") not in BLOCK_FIELDS:
            yield Refused("%s.cache_control: Extra inputs are not permitted "
                          "(unknown block type)" % where)
        if block.get("type") == "text" and not block.get("text", "").strip():
            yield Refused("%s.cache_control: cannot be set for empty text "
                          "blocks" % where)


# ---- against what came before --------------------------------------------

def strip_marks(raw):
    """A tool, a system block or a content block without its mark."""
    if isinstance(raw.value, dict) and "cache_control" in raw.value:
        return raw.without("cache_control")
    return raw.text


class Shape:
    """A request cut into the parts that must not move."""

    def __init__(self, body):
        self.model = body.value.get("model")
        self.head = {}
        for key in ("system", "tools"):
            raw = body.get(key)
            self.head[key] = None if raw is None else [
                strip_marks(r) for r in raw.items()] \
                if isinstance(raw.value, list) else [raw.text]
        self.fixed = {k: body.get(k).text for k in
                      ("thinking", "output_config", "tool_choice")
                      if k in body.value}
        self.messages = []
        for m in body.get("messages").items():
            content = m.get("content")
            blocks = [strip_marks(b) for b in content.items()] \
                if isinstance(content.value, list) else [content.text]
            self.messages.append((m.value.get("role"), blocks))


class Reply:
    """What the server sent as one assistant message.

    blocks: list of dicts {kind, want: [(key, how, value)], text} where `how`
    says whether the raw text or the decoded value has to come back.
    mode: 'exact', or 'loose' (a cut or refused turn: the client may leave
    out blocks or the whole message).
    """

    def __init__(self, blocks, mode="exact", stop=None):
        self.blocks = blocks
        self.mode = mode
        self.stop = stop

    def solid(self):
        """The blocks that a client can send back: blank texts go."""
        return [b for b in self.blocks if not b.blank]


class SentBlock:
    def __init__(self, kind, members, blank=False):
        self.kind = kind
        self.members = members      # [(key, 'raw'|'value'|'any', expected)]
        self.blank = blank

    def compare(self, raw):
        """None, or what is different in the client's copy."""
        copy = rawjson.parse(raw.encode("utf-8"))
        if not isinstance(copy.value, dict):
            return "is not an object"
        got = copy.members()
        if [k for k, _ in got] != [k for k, _, _ in self.members]:
            return "members were %s, are now %s" % (
                [k for k, _, _ in self.members], [k for k, _ in got])
        for (key, how, want), (_, have) in zip(self.members, got):
            if how == "value" and have.value != want:
                return "'%s' was %r, is now %r" % (key, want, have.value)
            if how == "raw" and have.text != want and not (
                    re.search(r"[\r\n]", want) and
                    rawjson.compact(want) == rawjson.compact(have.text)):
                return "'%s' was %s, is now %s" % (key, want[:300],
                                                   have.text[:300])
        return None


class History:
    """All conversations that a server has seen."""

    def __init__(self, opts):
        self.opts = opts
        self.past = []              # [Shape, Reply, was continued]

    def add(self, shape, reply):
        """An answered request.  check() has just accepted it."""
        for entry in reversed(self.past):
            if self._follows(entry[0], entry[1], shape)[0] is None:
                entry[2] = entry[2] or len(shape.messages) > \
                    len(entry[0].messages)
                break
        self.past.append([shape, reply, False])

    def paused(self):
        """A paused turn is continued with its message as the last."""
        return bool(self.past) and self.past[-1][1].stop == "pause_turn"

    def forget(self):
        self.past = []

    def check(self, shape):
        """Yields Refused where the request does not continue the past."""
        if not self.past or not self.opts.check_prefix or self._first(shape):
            return
        problems, depth = [], -1
        for old, reply, continued in reversed(self.past):
            problem, n = self._follows(old, reply, shape)
            if problem is None and continued and not self.opts.forks \
                    and len(shape.messages) > len(old.messages):
                problem = "prefix: goes back to message %d of a " \
                    "conversation that went on from there" % n
            if problem is None:
                found = self._head(old, shape)
                if not found:
                    return
                n += 1              # worth more than any other hint
            else:
                found = [problem]
            if n > depth:
                problems, depth = found, n
        for p in problems:
            yield Refused(p)

    def _first(self, shape):
        """A conversation's first request, or that again."""
        return not any(role == "assistant" for role, _ in shape.messages) \
            and not any(len(shape.messages) > len(old.messages) and
                        shape.messages[:len(old.messages)] == old.messages
                        for old, _, _ in self.past)

    def _head(self, old, new):
        """What moved in front of the messages."""
        out = []
        if old.model != new.model and not self.opts.model_change:
            out.append("model changed in mid-conversation: %s to %s"
                       % (old.model, new.model))
        for key in ("tools", "system"):
            if old.head[key] != new.head[key]:
                out.append("prefix: '%s' changed: %s" % (
                    key, first_difference(old.head[key], new.head[key])))
        if old.fixed != new.fixed and old.model == new.model:
            out.append("prefix: %s is now %s" % (old.fixed, new.fixed))
        return out

    def _follows(self, old, reply, new):
        """(None, n) if `new` repeats or continues `old`; else why not and
        how many messages were equal."""
        n = 0
        for a, b in zip(old.messages, new.messages):
            if a != b:
                break
            n += 1
        if n < len(old.messages):
            if n < len(new.messages):
                return ("prefix: messages.%d changed: %s" % (
                    n, first_difference(old.messages[n][1],
                                        new.messages[n][1]))), n
            return "prefix: messages were taken away", n
        rest = new.messages[n:]
        if not rest:
            return None, n
        if any(role == "assistant" for role, _ in rest[1:]):
            return "prefix: messages.%d and later do not continue what " \
                "was sent" % n, n
        return self._echo(reply, rest, n), n

    def _echo(self, reply, rest, n):
        want = reply.solid()
        role, blocks = rest[0]
        if role != "assistant":
            if reply.mode in ("loose", "any") or not want:
                return None
            return "messages.%d: the assistant message of the last " \
                "response is missing" % n
        if reply.mode == "any":
            return None
        if not want:
            return None             # a note in place of blank blocks
        if reply.mode == "loose":
            it = iter(want)
            for raw in blocks:
                if not any(w.compare(raw) is None for w in it):
                    return "messages.%d: a block of the cut response was " \
                        "changed: %s" % (n, raw[:200])
            return None
        for j, w in enumerate(want):
            if j >= len(blocks):
                return "messages.%d: block %d (%s) of the last response is " \
                    "missing" % (n, j, w.kind)
            problem = w.compare(blocks[j])
            if problem is None:
                continue
            if w.kind in ("thinking", "redacted_thinking"):
                return "messages.%d.content.%d: `thinking` or " \
                    "`redacted_thinking` blocks in the latest assistant " \
                    "message cannot be modified (%s)" % (n, j, problem)
            return "messages.%d.content.%d: %s block changed: %s" % (
                n, j, w.kind, problem)
        if len(blocks) != len(want):
            return "messages.%d: %d blocks were sent, %d came back" % (
                n, len(want), len(blocks))
        return None


def first_difference(a, b):
    """Words for the first place where two lists of texts differ."""
    a, b = a or [], b or []
    for i, (x, y) in enumerate(zip(a, b)):
        if x != y:
            k = next((k for k, (p, q) in enumerate(zip(x, y)) if p != q),
                     min(len(x), len(y)))
            return "block %d at character %d: ...%s | ...%s" % (
                i, k, x[max(0, k - 30):k + 40], y[max(0, k - 30):k + 40])
    return "%d blocks, now %d" % (len(a), len(b))


def cache_blocks(body):
    """[(text of the prompt so far hashed by the caller, marked?)] pieces."""
    out = []
    for key in ("tools", "system"):
        raw = body.get(key)
        if raw is not None and isinstance(raw.value, list):
            out += [(strip_marks(r), "cache_control" in r.value)
                    for r in raw.items()]
    for m in body.get("messages").items():
        content = m.get("content")
        role = m.value.get("role")
        if isinstance(content.value, list):
            out += [(role + strip_marks(r), "cache_control" in r.value)
                    for r in content.items()]
        else:
            out.append((role + json.dumps(content.value), False))
    return out
