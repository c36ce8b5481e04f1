"""Calls tools through the mcpx daemon: the client for programs in Python 3.8 and later.

    from mcpx import tools, ToolError

    tools.demo.echo(text="hi")                  # by keyword
    tools["my-server"]["a.tool"]({"a-b": 1})    # or one dict, for names that are no identifiers
    tools.demo.add.raw(a=1, b=2)                # the whole result, as the server sent it

    from mcpx import resources, prompts

    resources("demo").list()                    # also .templates() and .read(uri)
    prompts("demo").get("greeting", {"to": "x"})  # also .list()

Session and daemon come from the environment that mcpx gives a script. Only the
standard library is used. A call that may have reached its server is never sent
again: when the connection breaks, ToolError.kind is "outcome-unknown".
"""

import base64
import http.client
import json
import os
import select
import socket
import sys
import threading
import time
import urllib.parse

__all__ = ["tools", "resources", "prompts", "ToolError", "args", "artifact", "emit", "log"]

# The exit code of each kind of error.
_EXITS = {}  # mcpx fills this in

#: The words after the script.
args = sys.argv[1:]


class ToolError(Exception):
    """A call that failed.

    kind is a stable word ("tool" when the tool itself reported it), server and
    tool say which, hint what may help, raw what the tool answered.
    """

    def __init__(self, message, kind="tool", server=None, tool=None, hint=None, raw=None):
        super().__init__(message)
        self.message = message
        self.kind = kind
        self.server = server
        self.tool = tool
        self.hint = hint
        self.raw = raw

    def __str__(self):
        where = "%s.%s, " % (self.server, self.tool) if self.tool else ""
        text = "%s (%skind %s)" % (self.message, where, self.kind)
        return text + "\n  " + self.hint if self.hint else text


class _Unix(http.client.HTTPConnection):
    """HTTP over a unix socket."""

    def __init__(self, path):
        super().__init__("mcpx")
        self._path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self.sock.connect(self._path)
        except OSError:
            self.sock.close()
            self.sock = None
            raise


class _Connections(threading.local):
    """One connection a thread, kept for its next call."""

    kept = None
    owner = None


_connections = _Connections()


def _open():
    path = os.environ.get("MCPX_SOCKET")
    endpoint = os.environ.get("MCPX_ENDPOINT")
    if path:
        return _Unix(path), {}
    if endpoint:
        headers = {}
        token = os.environ.get("MCPX_TRANSPORT_BEARER_TOKEN")
        if token:
            headers["Authorization"] = "Bearer " + token
        where = urllib.parse.urlsplit(endpoint)
        kind = http.client.HTTPSConnection if where.scheme == "https" else http.client.HTTPConnection
        return kind(where.netloc), headers
    raise ToolError(
        "no daemon is known to this program",
        kind="unavailable",
        hint="start it with `mcpx run <file>`, or set MCPX_SOCKET, or MCPX_ENDPOINT and MCPX_TRANSPORT_BEARER_TOKEN",
    )


def _connection():
    kept = _connections.kept
    if kept is not None and _connections.owner == os.getpid():
        sock = kept[0].sock
        # A connection with something to read has been closed: nothing was asked on it.
        if sock is not None and not select.select([sock], [], [], 0)[0]:
            return kept
        kept[0].close()
    _connections.kept = _open()
    _connections.owner = os.getpid()  # a forked process must not share it
    return _connections.kept


def _context():
    context = {}
    for field, variable in (
        ("session", "MCPX_SESSION"),
        ("sessionId", "MCPX_SESSION_ID"),
        ("parentSessionId", "MCPX_PARENT_SESSION_ID"),
        ("cwd", "MCPX_CWD"),
        ("run", "MCPX_RUN"),
    ):
        value = os.environ.get(variable)
        if value:
            context[field] = value
    if os.environ.get("MCPX_EPHEMERAL") == "1":
        context["ephemeral"] = True
    pid = os.environ.get("MCPX_PID", "")
    if pid.isdigit():
        context["pid"] = int(pid)
    return context


def _fail(connection, error, kind, subject):
    connection.close()
    _connections.kept = None
    server, tool = subject
    what = "%s.%s: " % subject if tool else "%s: " % (server or "artifact")
    if kind == "outcome-unknown":
        what += "the connection to the daemon ended before the answer came; the call was not sent again: "
    else:
        what += "the daemon cannot be reached: "
    raise ToolError(what + str(error), kind, *subject) from error


def _ask(server, tool, arguments):
    body = {"server": server, "tool": tool}
    if arguments is not None:
        body["arguments"] = arguments
    return _post("/v1/call", body, server, tool)


def _post(where, body, server=None, tool=None, unanswered="outcome-unknown"):
    body["context"] = _context()
    return _exchange("POST", where, body, (server, tool), unanswered)


def _exchange(method, path, body, subject, unanswered):
    """One request; unanswered is the kind of error that no answer to it is."""
    server, tool = subject
    try:
        text = b""
        if body is not None:
            text = json.dumps(body, ensure_ascii=False, allow_nan=False).encode("utf-8", "surrogatepass")
    except (TypeError, ValueError) as error:
        raise ToolError("the arguments have no form in JSON: %s" % error, "usage", server, tool) from error
    connection, headers = _connection()
    headers = dict(headers)
    headers["Content-Type"] = "application/json"
    for name, variable in (("X-Mcpx-Settings", "MCPX_SETTINGS"), ("X-Mcpx-Input", "MCPX_INPUT")):
        value = os.environ.get(variable)
        if value:
            headers[name] = value
    if connection.sock is None:
        try:
            connection.connect()
        except OSError as error:
            _fail(connection, error, "unavailable", subject)
    try:
        connection.request(method, path, text, headers)
        response = connection.getresponse()
        answer = response.read()
    except (OSError, http.client.HTTPException) as error:
        _fail(connection, error, unanswered, subject)
    except BaseException:
        # Interrupted: the answer must not be taken for that of the next call.
        connection.close()
        _connections.kept = None
        raise
    try:
        return json.loads(answer)
    except ValueError as error:
        _fail(connection, error, unanswered, subject)


def _result(server, tool, arguments):
    return _told(_ask(server, tool, arguments), server, tool)


def _told(answer, server, tool):
    answer = _checked(answer, server, tool)
    return answer["result"] if "result" in answer else answer


def _checked(answer, server=None, tool=None):
    error = answer.get("error")
    if error is not None:
        raise ToolError(
            error.get("message", "an error without a message"),
            error.get("kind", "internal"),
            error.get("server", server),
            error.get("tool", tool),
            error.get("hint"),
            error.get("raw"),
        )
    if "inputRequired" in answer:
        text = answer["inputRequired"].get("text", "the server asked a question that nobody here can answer")
        raise ToolError(text, "input-required", server, tool, raw=answer)
    return answer


def _parsed(text):
    if not text.lstrip().startswith(("{", "[")):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


def _is_text(item):
    return isinstance(item, dict) and item.get("type") == "text" and isinstance(item.get("text"), str)


def _value(server, tool, result):
    content = result.get("content") if isinstance(result, dict) else None
    if not isinstance(result, dict) or not (content is None or isinstance(content, list)):
        what = "its content is no array of blocks" if isinstance(result, dict) else "it is no object"
        message = "the server's answer is not a tool's result: " + what
        raise ToolError(message, "unavailable", server, tool, raw=result)
    content = content or []
    if result.get("isError"):
        texts = [item["text"] for item in content if _is_text(item)]
        message = "\n".join(texts) or "%s.%s reported an error without a text" % (server, tool)
        raise ToolError(message, "tool", server, tool, raw=result)
    if "structuredContent" in result:
        return result["structuredContent"]
    items = [_parsed(item["text"]) if _is_text(item) else item for item in content]
    return items if len(items) > 1 else items[0] if items else None


def _arguments(positional, named):
    if not positional:
        return named or None
    if len(positional) > 1 or named or not isinstance(positional[0], dict):
        raise ToolError("a tool takes named arguments, or one dict of them", kind="usage")
    return positional[0]


class _Tool:
    """One tool, to be called."""

    def __init__(self, server, tool):
        self._server = server
        self._tool = tool

    def __call__(self, *positional, **named):
        arguments = _arguments(positional, named)
        return _value(self._server, self._tool, _result(self._server, self._tool, arguments))

    def raw(self, *positional, **named):
        """Calls it, and gives the whole result as the server sent it, errors of the tool included."""
        return _result(self._server, self._tool, _arguments(positional, named))

    def __repr__(self):
        return "<tool %s.%s>" % (self._server, self._tool)


class _Namespace:
    """The tools of one server."""

    def __init__(self, server):
        self._server = server

    def __getattr__(self, tool):
        if tool.startswith("__"):
            raise AttributeError(tool)
        return _Tool(self._server, tool)

    def __getitem__(self, tool):
        return _Tool(self._server, tool)

    def __repr__(self):
        return "<namespace %s>" % self._server


class _Tools:
    """Every namespace, by identifier or by configured name."""

    def __getattr__(self, server):
        if server.startswith("__"):
            raise AttributeError(server)
        return _Namespace(server)

    def __getitem__(self, server):
        return _Namespace(server)

    def __repr__(self):
        return "<tools of mcpx>"


tools = _Tools()


class _Offers:
    """What a server offers besides tools."""

    def __init__(self, server):
        self._server = server

    def _get(self, path, **query):
        query["server"] = self._server
        session = os.environ.get("MCPX_SESSION")
        if session:
            query["session"] = session
        target = path + "?" + urllib.parse.urlencode(query)
        answer = _exchange("GET", target, None, (self._server, None), "unavailable")
        return _told(answer, self._server, None)


class resources(_Offers):
    """The resources of a server, by its identifier or its configured name."""

    def list(self):
        """All of them: a list of dicts with uri, name and what else the server says."""
        return self._get("/v1/resources")["resources"]

    def templates(self):
        """The patterns (RFC 6570) of those that are made on request."""
        return self._get("/v1/resources/templates")["resourceTemplates"]

    def read(self, uri):
        """Reads one: a list of dicts with uri and text, or blob in base64."""
        return self._get("/v1/resources/read", uri=uri)["contents"]


class prompts(_Offers):
    """The prompts of a server, by its identifier or its configured name."""

    def list(self):
        """All of them: a list of dicts with name and arguments."""
        return self._get("/v1/prompts")["prompts"]

    def get(self, name, arguments=None):
        """Fills one in: a dict with messages."""
        body = {"server": self._server, "name": name, "arguments": arguments or {}}
        answer = _post("/v1/prompts/get", body, self._server, None, "unavailable")
        return _told(answer, self._server, None)

_capture = os.environ.get("MCPX_CAPTURE") == "1"


def _text(value):
    return json.dumps(value, ensure_ascii=False, default=str, separators=(",", ":"))


def _record(entry):
    """Writes to stderr one record that mcpx tells from other text by its first byte (RFC 7464)."""
    sys.stderr.write("\x1e" + _text(entry) + "\n")
    sys.stderr.flush()


def emit(value):
    """Prints one value as one line of JSON."""
    print(_text(value), flush=True)
    if _capture:
        _record({"t": "emit", "value": value})


# So much of a content travels at once; the daemon writes each part to its disk.
_PART = 256 * 1024


def _parts(source):
    """The parts of bytes or of a file, each with whether more follow; an empty content is one part."""
    if isinstance(source, (bytes, bytearray, memoryview)):
        view = memoryview(source).cast("B")
        read = iter(bytes(view[at : at + _PART]) for at in range(0, len(view), _PART))
        step = lambda: next(read, b"")
    else:
        step = lambda: source.read(_PART)
    part = step()
    while True:
        following = step() if part else b""
        if isinstance(part, str):
            raise ToolError("artifact: a file must be opened in binary mode", "usage")
        yield part, bool(following)
        if not following:
            return
        part = following


def artifact(name=None, path=None, bytes=None, text=None, mime=None):
    """Keeps something beyond the run, from a path, from bytes (or a binary file), or from a text.

    Gives a dict: uri, id, name, mime, size, sha256, and path where the files are shared.
    """
    if sum(given is not None for given in (path, bytes, text)) != 1:
        raise ToolError("artifact: expected one of path, bytes and text", "usage")
    about = {}
    if name is None and path is not None:
        name = os.path.basename(os.fspath(path))
    if name is not None:
        about["name"] = str(name)
    if mime is not None:
        about["mime"] = str(mime)
    if path is not None and os.environ.get("MCPX_ARTIFACTS_LOCAL") == "1":
        kept = _kept(about, {"path": os.path.abspath(os.fspath(path))})
    elif path is not None:
        with open(path, "rb") as file:
            kept = _send(about, file)
    elif text is not None:
        if mime is None and not os.path.splitext(name or "")[1]:
            about["mime"] = "text/plain; charset=utf-8"
        kept = _send(about, str(text).encode("utf-8", "surrogatepass"))
    else:
        kept = _send(about, bytes)
    if _capture:
        _record({"t": "artifact", "value": kept})
    return kept


def _kept(about, content):
    answer = _checked(_post("/v1/artifacts", dict(about, **content)))
    return answer.get("artifact", answer)


def _send(about, source):
    kept = {}
    for part, more in _parts(source):
        content = {"data": base64.b64encode(part).decode("ascii")}
        if more:
            content["more"] = True
        if "upload" in kept:
            content["upload"] = kept["upload"]
        kept = _kept(about, content)
    return kept


_LEVELS = ("debug", "info", "warn", "error")


class _Log:
    """Log lines on stderr: log.info("fetched {n} rows", n=3), or log.info("fetched {n} rows", {"n": 3})."""

    def __init__(self):
        level = os.environ.get("MCPX_LOG_LEVEL", "info")
        ranks = {"trace": 0, "off": len(_LEVELS)}
        ranks.update((name, rank) for rank, name in enumerate(_LEVELS))
        self._lowest = ranks.get(level, 1)

    def _say(self, rank, message, fields, more):
        if rank < self._lowest:
            return
        if fields is not None and not isinstance(fields, dict):
            raise TypeError("log takes a message and a dict of fields, not %s" % type(fields).__name__)
        fields = dict(fields or {}, **more)
        text = str(message)
        for key, value in fields.items():
            text = text.replace("{%s}" % key, value if isinstance(value, str) else _text(value))
        if _capture:
            entry = {"t": "log", "level": _LEVELS[rank], "at": int(time.time() * 1000), "message": text}
            if fields:
                entry["fields"] = fields
            _record(entry)
        else:
            print("%-5s %s" % (_LEVELS[rank], text), file=sys.stderr, flush=True)

    def debug(self, message, fields=None, /, **more):
        self._say(0, message, fields, more)

    def info(self, message, fields=None, /, **more):
        self._say(1, message, fields, more)

    def warn(self, message, fields=None, /, **more):
        self._say(2, message, fields, more)

    def error(self, message, fields=None, /, **more):
        self._say(3, message, fields, more)


log = _Log()


def _ends_with_its_kind(before):
    """Has a ToolError that nobody catches end the program with the exit code of its kind."""

    def hook(kind, error, trace):
        before(kind, error, trace)
        if isinstance(error, ToolError):
            import atexit

            if _capture:
                told = {"name": "ToolError", "message": error.message, "kind": error.kind}
                for field in ("server", "tool", "hint", "raw"):
                    if getattr(error, field) is not None:
                        told[field] = getattr(error, field)
                _record({"t": "error", "error": told})
            atexit._run_exitfuncs()
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(_EXITS.get(error.kind, 1))

    return hook


if os.environ.get("MCPX_RUN"):
    sys.excepthook = _ends_with_its_kind(sys.excepthook)
