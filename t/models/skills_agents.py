"""Requests of coding agents' users: run a command; read, write, search files.

The tools are like those of agents (a shell, files, search, and some that are
not needed), with many names and parameters.  The call uses the tool that fits,
or the shell.  Answers report the result in a few words.
"""

from phrasing import Item, is_held, say
from skills_tools import _call, call_text
from skills_words import WORDS, made_up, plain_sentence

# kind: names of a tool of this kind, and its parameters as (names, value)
KINDS = {
    "shell": (["shell", "bash", "Bash", "exec_command", "run_shell_command",
               "run_command", "execute_command", "terminal", "Shell", "exec",
               "local_shell", "shell_command", "run_in_terminal"],
              [(["command", "command", "cmd", "cmd", "script", "input"],
                "command")]),
    "read": (["read_file", "Read", "read", "view", "open_file", "ReadFile",
              "view_file", "file_read", "get_file"],
             [(["path", "file_path", "filePath", "absolute_path", "filename",
                "file"], "path")]),
    "write": (["write_file", "Write", "write", "create_file", "WriteFile",
               "file_write", "new_file", "save_file"],
              [(["path", "file_path", "filePath", "filename", "file"], "path"),
               (["content", "content", "contents", "text", "file_text"],
                "text")]),
    "edit": (["edit", "Edit", "edit_file", "replace", "str_replace",
              "EditFile"],
             [(["path", "file_path", "filePath", "file"], "path"),
              (["old_string", "oldString", "old", "search"], "old"),
              (["new_string", "newString", "new", "replacement"], "new")]),
    "list": (["list_directory", "LS", "list", "ls", "list_dir", "list_files",
              "read_dir"],
             [(["path", "directory", "dir", "folder"], "folder")]),
    "grep": (["grep", "Grep", "grep_search", "search_files", "rg",
              "search_file_content"],
             [(["pattern", "pattern", "query", "regex"], "word")]),
    "glob": (["glob", "Glob", "find_files", "file_search"],
             [(["pattern", "pattern", "glob"], "glob")]),
}
SPARE_NAMES = ["task", "Agent", "todo_write", "TodoWrite", "web_fetch",
               "WebSearch", "skill", "send_message", "update_plan", "ask_user",
               "create_goal", "view_image", "CronCreate", "task_stop",
               "write_stdin", "save_memory", "notebook_edit", "exit_plan_mode",
               "EnterWorktree", "ReportFindings", "monitor", "TaskOutput"]
SPARE_KEYS = ["prompt", "description", "query", "url", "id", "name", "task_id",
              "questions", "message", "reason", "status", "title", "format",
              "model", "args", "todos", "metadata", "objective"]
MORE_KEYS = ["timeout", "workdir", "description", "limit", "offset", "shell",
             "justification", "run_in_background", "is_background", "pages",
             "directory", "include", "login", "tty", "yield_time_ms"]
TYPES = ["string", "string", "string", "number", "integer", "boolean", "array"]
EXTENSIONS = [".txt", ".md", ".c", ".py", ".json", ".js", ".html", ".log"]

ASKS = {
    "command": (["Run {x}.", "Run the command {x}.", "Run `{x}`.",
                 "Run the [shell |]command `{x}`.", "Execute {x}.",
                 "Run {x} and tell me what it [prints|says].",
                 "Please run {x} for me.", "Use the shell to run {x}.",
                 "What does {x} print?", "Show me the output of {x}.",
                 "Run the command {x} and [show|tell] me the [output|result].",
                 "Use {tool} to run {x}.", "Call {tool} with the command {x}.",
                 "Try {x}.", "Can you run {x}?", "Run this command: {x}",
                 "In the shell, run {x}.", "Do {x} in the terminal."],
                ["I want to see what {x} prints.", "Start {x}, please.",
                 "Execute the command {x} and report what it says.",
                 "Would you run `{x}` now?"]),
    "read": (["Read {p}.", "Read the file {p}.", "Open {p}.",
              "Read the file {p} and tell me what it says.",
              "Show me {p}.", "What is in {p}?", "What does {p} say?",
              "What is in the file {p}?", "Show me the [contents|content] of "
              "{p}.", "Read {p} and tell me what is in it.", "Look at {p}.",
              "Tell me what the file {p} [says|contains].", "Print {p}.",
              "Use {tool} to read {p}.", "Can you read {p}?"],
             ["Have a look into {p}.", "I need to know what {p} holds.",
              "Please open the file {p} and tell me what it says."]),
    "write": (["Create a file named {p} that contains {t}.",
               "Create a file {p} [with the text|with|containing] {t}.",
               "Create {p} with the [text|content|words] {t}.",
               "Write {t} to {p}.", "Write {t} into the file {p}.",
               "Create a file named {p} that contains the [word|text] {t}.",
               "Make a file {p} that says {t}.", "Put {t} into {p}.",
               "Save {t} in {p}.", "Write a file {p} that says {t}.",
               "Create the file {p}, and write {t} into it."],
              ["I need a file {p} with the text {t}.",
               "Please create a new file called {p} that holds {t}.",
               "Store {t} in a file named {p}."]),
    "touch": (["Create {p}.", "Create a file {p}.", "Create the file {p}.",
               "Create a file named {p}.", "Make a file called {p}.",
               "Create an empty file {p}.", "Add a file {p}."],
              ["I need a new file {p}.", "Please make the file {p}."]),
    "edit": (["Replace {a} with {b} in {p}.", "In {p}, change {a} to {b}.",
              "Change {a} to {b} in {p}.", "Replace {a} by {b} in the file "
              "{p}.", "Edit {p}: replace {a} with {b}."],
             ["In the file {p}, put {b} in place of {a}."]),
    "list": (["List the files.", "List the files [here|in this folder|in the "
              "current directory].", "What files are here?", "Which files are "
              "[there|in this folder]?", "Show me the files in this "
              "[folder|directory].", "List this directory.", "List all files.",
              "What is in this folder?"],
             ["Tell me which files this folder has.", "I want a list of the "
              "files here."]),
    "grep": (["Search for {w}.", "Search the files for {w}.",
              "Find {w} in the files.", "grep for {w}.",
              "Search for {w} in the code.", "Which files contain {w}?",
              "Where is {w} used?", "Look for {w} in this folder."],
             ["Find out which files mention {w}."]),
    "glob": (["Find all {e} files.", "Find the {e} files.", "List all {e} "
              "files.", "Which {e} files are there?"],
             ["Show me every {e} file."]),
}
WANTS = (["command"] * 7 + ["read"] * 5 + ["write"] * 6 + ["touch"] * 2
         + ["edit", "edit", "list", "list", "list", "grep", "grep", "glob"])

CONTEXTS = ["<environment_context>\n  <cwd>{d}</cwd>\n  <shell>bash</shell>\n"
            "</environment_context>",
            "<env>\nWorking directory: {d}\nPlatform: linux\n</env>",
            "This is the context for our chat.\nMy operating system is: linux\n"
            "I'm working in {d}\nHere is the folder: {d}/",
            "Files in {d}: {p}"]
REMINDER = "<system-reminder>\n{s}\n</system-reminder>\n\n"


# -- the tools ----------------------------------------------------------------

def _property(rng, kind=None):
    value = {"type": kind or rng.choice(TYPES)}
    if value["type"] == "array":
        value["items"] = {"type": "string"}
    return value


def _any_name(rng, known, held):
    """One of the known names, or a made-up one."""
    while True:
        name = rng.choice(known)
        if rng.random() < 0.25:
            words = [rng.choice(WORDS), rng.choice([name, made_up(rng)])]
            name = rng.choice(["_".join(words), words[0] + words[1].title(),
                               "".join(w.title() for w in words)])
        if is_held("tool", name) == held:
            return name


class Tool:
    """An agent's tool: its JSON, kind, name, and its required parameters in
    order as (key, value)."""

    def __init__(self, rng, kind, held):
        names, slots = KINDS[kind]
        names = [n for n in names if is_held("tool", n) == held] or names
        self.kind, self.name = kind, rng.choice(names)
        if rng.random() < (0.5 if held else 0.15):
            self.name = f"{rng.choice(WORDS)}_{rng.choice(names).lower()}"
        self.keys = [(rng.choice(k), value) for k, value in slots]
        if kind == "write" and rng.random() < 0.3:
            self.keys.reverse()
        self.needs_about = kind == "shell" and rng.random() < 0.12
        if self.needs_about:
            self.keys.append(("description", "about"))
        properties = {k: {"type": "string"} for k, _ in self.keys}
        for key in rng.sample(MORE_KEYS, rng.choice([0, 0, 1, 2, 3, 6])):
            properties.setdefault(key, _property(rng))
        self.json = _function(rng, self.name, properties,
                              [k for k, _ in self.keys])

    def call(self, values):
        """(name, arguments), with the values of the tool's parameters."""
        return self.name, {k: values[what] for k, what in self.keys}


def _function(rng, name, properties, required):
    function = {"name": name, "parameters": {
        "type": "object", "properties": properties, "required": required}}
    if rng.random() < 0.5:
        function["description"] = plain_sentence(rng)
    return {"type": "function", "function": function}


def _spare(rng):
    keys = rng.sample(SPARE_KEYS, rng.choice([0, 1, 1, 2, 3, 5]))
    return _function(rng, _any_name(rng, SPARE_NAMES, False),
                     {k: _property(rng) for k in keys},
                     keys[:rng.randint(0, len(keys))])


def offer(rng, held=False):
    """The tools of one agent: {kind: Tool}, and all of them as JSON."""
    kinds = [k for k in KINDS if k == "shell" or rng.random() < 0.45]
    have = {k: Tool(rng, k, held) for k in kinds}
    if rng.random() < 0.1 and len(have) > 1:
        del have["shell"]
    spare = [_spare(rng) for _ in range(rng.choice([0, 0, 2, 4, 8, 14]))]
    everything = [t.json for t in have.values()] + spare
    names = set()
    everything = [t for t in everything if t["function"]["name"] not in names
                  and not names.add(t["function"]["name"])]
    rng.shuffle(everything)
    return have, everything


# -- what is asked ------------------------------------------------------------

def _word(rng, held):
    while True:
        word = rng.choice(WORDS) if rng.random() < 0.6 else made_up(rng)
        if is_held(word) == held:
            return word


def _path(rng, held):
    name = _word(rng, held) + rng.choice(EXTENSIONS)
    r = rng.random()
    if r < 0.15:
        return f"{rng.choice(['src', 'docs', 'lib', 'test'])}/{name}"
    if r < 0.22:
        return f"/{rng.choice(['tmp', 'home', 'work', 'srv'])}/{name}"
    return name


def _command(rng, held):
    word, path = _word(rng, held), _path(rng, held)
    return rng.choice([
        "ls", "ls -la", "ls -l", "pwd", "date", "whoami", "uname -a", "df -h",
        f"echo {word}", f"echo {word}", f"echo {word} {_word(rng, held)}",
        f"cat {path}", f"head -n {rng.randint(1, 20)} {path}", f"wc -l {path}",
        "git status", "git log", "git diff", "make", "make test", "npm test",
        f"python3 {word}.py", f"node {word}.js", f"mkdir {word}",
        f"rm {path}", f"touch {path}", f"cp {path} {word}", f"sort {path}",
        f"ls {word}", f"cd {word}", f"which {word}", f"grep {word} {path}",
        f"echo '{word}' > {path}", f"find . -name '*{path[-3:]}'",
        f"sleep {rng.randint(1, 9)}", "env", "id", "hostname", "uptime",
        f"./{word}.sh", f"test -f {path}", f"{word} --version"])


def _text(rng, held):
    r = rng.random()
    if r < 0.5:
        return _word(rng, held)
    if r < 0.8:
        return " ".join(_word(rng, held) for _ in range(rng.choice([2, 3])))
    if r < 0.9:
        return str(rng.randint(0, 999))
    return plain_sentence(rng).rstrip("!?.")


class Want:
    """A request of a user: the question, the tool call for it, and the words
    that the answer repeats."""

    def __init__(self, rng, held, have):
        self.want = rng.choice(WANTS)
        self.path, self.text = _path(rng, held), _text(rng, held)
        word, other = _word(rng, held), _word(rng, held)
        ending = rng.choice(EXTENSIONS)
        values = {"path": self.path, "text": self.text, "old": word,
                  "new": other, "word": word, "folder": ".",
                  "glob": f"**/*{ending}"}
        by_shell = {
            "command": _command(rng, held), "read": f"cat {self.path}",
            "write": f"echo '{self.text}' > {self.path}",
            "touch": f"touch {self.path}",
            "edit": f"sed -i 's/{word}/{other}/g' {self.path}",
            "list": "ls", "grep": f"grep -rn {word} .",
            "glob": f"find . -name '*{ending}'"}
        kind = {"command": "shell", "touch": "write"}.get(self.want, self.want)
        if kind not in have:
            kind = "shell"
        if self.want == "touch" and kind == "write":
            values["text"] = ""
        values["command"] = by_shell[self.want]
        values["about"] = f"Run {values['command']}"
        self.possible = kind in have
        if not self.possible:
            return
        tool = have[kind]
        self.kind, (self.name, self.arguments) = kind, tool.call(values)
        quote = rng.choice(["", "", "", '"', "'"])
        self.ask = say(rng, held, *ASKS[self.want], x=by_shell["command"],
                       p=self.path, t=f"{quote}{self.text}{quote}", a=word,
                       b=other, w=word, e=ending, tool=tool.name)
        if rng.random() < 0.08:
            self.ask = f'"{self.ask}"'

    def think(self):
        return f"I call {self.name}."


def _want(rng, held):
    """(the request, the tools by kind, all tools)"""
    while True:
        have, tools = offer(rng, held)
        want = Want(rng, held, have)
        if want.possible:
            return want, have, tools


def context(rng):
    """Text that agents put before a user's question: turns, and a beginning of
    the user's message."""
    turns, before = [], ""
    if rng.random() < 0.3:
        text = rng.choice(CONTEXTS).replace("{d}", f"/work/{made_up(rng)}")
        turns = [("user", text.replace("{p}", _path(rng, False)))]
        if rng.random() < 0.4:
            turns.append(("assistant", "Got it. Thanks for the context!"))
    if rng.random() < 0.15:
        before = REMINDER.replace("{s}", " ".join(
            plain_sentence(rng) for _ in range(rng.randint(1, 4))))
    return turns, before


def agent_call(rng, held):
    want, _, tools = _want(rng, held)
    turns, before = context(rng)
    return Item(before + want.ask, call_text(want.name, want.arguments),
                want.think(), before=turns, tools=tools)


# -- results ------------------------------------------------------------------

def _wrapped(rng, output, failed):
    """A command's output in the form of one of the agents' tools."""
    code = rng.choice([1, 2, 127]) if failed else 0
    kind = rng.randrange(8)
    if kind < 3:
        return output
    if kind == 3:
        return (f"Chunk ID: {rng.randrange(16 ** 6):06x}\nWall time: 0."
                f"{rng.randint(0, 9999):04d} seconds\nProcess exited with "
                f"code {code}\nOutput:\n{output}")
    if kind == 4:
        return f"Exit code: {code}\nWall time: 0.1 seconds\nOutput:\n{output}"
    if kind == 5:
        return (f"Command: {_command(rng, False)}\nDirectory: (root)\nOutput: "
                f"{output or '(empty)'}\nError: (none)\nExit Code: {code}\n"
                "Signal: (none)")
    if kind == 6:
        return f"{output}\n\n<exit_code>{code}</exit_code>"
    return f"<output>\n{output}\n</output>"


def _read_result(rng, lines):
    kind = rng.randrange(4)
    if kind == 0:
        return "\n".join(f"{i:6}\t{s}" for i, s in enumerate(lines, 1))
    if kind == 1:
        body = "\n".join(f"{i:05}| {s}" for i, s in enumerate(lines, 1))
        return f"<file>\n{body}\n</file>"
    if kind == 2:
        body = "\n".join(f"{i}: {s}" for i, s in enumerate(lines, 1))
        return f"<content>\n{body}\n</content>"
    return "\n".join(lines)


def _line(rng, held):
    r = rng.random()
    if r < 0.4:
        return _text(rng, held)
    if r < 0.6:
        return plain_sentence(rng)
    if r < 0.7:
        return f"/work/{made_up(rng)}/{_word(rng, held)}"
    if r < 0.8:
        return str(rng.randint(0, 99999))
    return f"{_word(rng, held)} {rng.randint(0, 99)} {_path(rng, held)}"


def _failure(rng, path):
    return rng.choice([f"Error: {path}: no such file", "command not found",
                       "permission denied", "Error: ENOENT: no such file or "
                       f"directory, open '{path}'", "The user refused.",
                       f"Error: {path} is a directory", "timed out"])


def _output(rng, held, want):
    """(the tool's result, the answer, texts that the answer must contain) for a
    result that the answer repeats."""
    lines = [_line(rng, held) for _ in range(
        rng.choice([1, 1, 1, 1, 2, 3, 12]))]
    if want.want in ("list", "glob"):
        lines = [_path(rng, held) for _ in range(rng.choice([1, 2, 3, 4]))]
    result = (_read_result(rng, lines) if want.kind == "read"
              else _wrapped(rng, "\n".join(lines), False))
    told = ("\n" + "\n".join(lines) if 1 < len(lines) < 5 else lines[0])
    if want.want in ("list", "glob"):
        return result, f"The files: {', '.join(lines)}", lines
    start = f"{want.path} says:" if want.want == "read" else "The output is:"
    if len(lines) > 4:
        start = start.replace("says", "begins with").replace("is", "begins "
                                                             "with")
    gap = "" if told.startswith("\n") else " "
    return result, f"{start}{gap}{told}", lines[:1]


def _result(rng, held, want):
    """(the tool's result, the answer, texts that the answer must contain)"""
    if rng.random() < 0.1:
        why = _failure(rng, want.path)
        text = _wrapped(rng, why, True) if want.kind == "shell" else why
        return text, f"That failed: {why}", [why]
    if want.want in ("write", "touch", "edit"):
        done = "changed" if want.want == "edit" else "created"
        text = rng.choice([f"File {done} successfully at: {want.path}", "ok",
                           f"Successfully wrote to {want.path}.", "Done.",
                           f"The file {want.path} has been {done}.",
                           f"Wrote {rng.randint(1, 99)} bytes.",
                           "Wrote file successfully."])
        if want.kind == "shell":
            text = _wrapped(rng, rng.choice(["", "", "(no output)"]), False)
        return text, f"I have {done} {want.path}.", [done, want.path]
    if want.want == "command" and rng.random() < 0.15:
        text = _wrapped(rng, rng.choice(["", "(no output)", "(Completed with "
                                         "no output)"]), False)
        return text, "Done. It printed nothing.", ["printed nothing"]
    return _output(rng, held, want)


def _exchange(want, result):
    return [("user", want.ask),
            {"role": "assistant", "content": None,
             "tool_calls": [_call("call_1", want.name, want.arguments)]},
            {"role": "tool", "tool_call_id": "call_1", "content": result}]


def agent_answer(rng, held):
    want, _, tools = _want(rng, held)
    result, answer, check = _result(rng, held, want)
    turns, before = context(rng)
    want.ask = before + want.ask
    return Item(None, answer, "The tool has answered. I tell the user.", check,
                turns + _exchange(want, result), tools)


def agent_talk(rng, held):
    """Several requests in one conversation, which ends with a call or an
    answer.  Not asked by eval.py."""
    have, tools = offer(rng, held)
    talk = context(rng)[0]
    for left in range(rng.choice([1, 2, 2]), -1, -1):
        want = Want(rng, held, have)
        while not want.possible:
            want = Want(rng, held, have)
        if left == 0 and rng.random() < 0.5:
            return Item(want.ask, call_text(want.name, want.arguments),
                        want.think(), before=talk, tools=tools)
        result, answer, check = _result(rng, held, want)
        talk = talk + _exchange(want, result)
        if left:
            talk.append(("assistant", answer))
    return Item(None, answer, "The tool has answered. I tell the user.", check,
                talk, tools)
