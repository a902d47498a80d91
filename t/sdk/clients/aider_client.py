"""aider, the program, in a repository of its own: a question, and an edit that
it makes and commits.

Aider edits by what the model writes, without tools.  So that this holds with
any weights the model is given a settings file, as a user may write one, whose
extra_params say what an answer has to look like.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

from tap import BASE, QUESTION, ok, run

DIR = pathlib.Path(tempfile.mkdtemp(dir=os.environ["HOME"]))
FENCE = "`" * 3
EDIT = rf"hello\.txt\n{FENCE}\nhi [a-z]{{3,8}}\n{FENCE}\n"

os.environ.update({"GIT_AUTHOR_NAME": "t", "GIT_AUTHOR_EMAIL": "t@localhost",
                   "GIT_COMMITTER_NAME": "t",
                   "GIT_COMMITTER_EMAIL": "t@localhost",
                   "GIT_CONFIG_GLOBAL": "/dev/null"})

(DIR / ".aider.model.settings.yml").write_text(f"""
- name: openai/demo
  edit_format: whole
  weak_model_name: openai/mini
  use_temperature: 0
  extra_params:
    max_tokens: 200
    extra_body:
      structured_outputs:
        regex: '{EDIT}'
- name: openai/mini
  edit_format: whole
  weak_model_name: openai/mini
  use_temperature: 0
  extra_params:
    max_tokens: 40
""")
(DIR / ".aider.model.metadata.json").write_text("{%s}" % ", ".join(
    f'"openai/{m}": {{"max_input_tokens": 16000, "max_output_tokens": 1000,'
    f' "litellm_provider": "openai", "mode": "chat"}}'
    for m in ("demo", "mini")))


def call(*args):
    r = subprocess.run(args, capture_output=True, text=True, cwd=DIR,
                       stdin=subprocess.DEVNULL)
    return r.returncode, r.stdout + r.stderr


def aider(*args):
    return call(pathlib.Path(sys.executable).parent / "aider",
                "--openai-api-base", BASE, "--openai-api-key", "none",
                "--yes-always", "--no-check-update", "--analytics-disable",
                "--no-show-model-warnings", "--no-show-release-notes",
                "--no-pretty", "--no-fancy-input", "--no-detect-urls",
                "--no-suggest-shell-commands", "--map-tokens", "0",
                "--no-gitignore", *args)


def question():
    call("git", "init", "-q")
    code, out = aider("--model", "openai/mini", "--chat-mode", "ask",
                      "--no-stream", "--message", QUESTION)
    ok(code == 0 and "rror" not in out and "received" in out,
       "a question", out)


def edit():
    (DIR / "hello.txt").write_text("hello\n")
    call("git", "add", "hello.txt")
    call("git", "commit", "-qm", "first")
    code, out = aider("--model", "openai/demo", "--message",
                      "Say hi in hello.txt.", "hello.txt")
    text = (DIR / "hello.txt").read_text()
    ok(code == 0 and text.startswith("hi ") and "Applied edit" in out,
       "the file is edited", text + out)
    _, log = call("git", "log", "--format=%s")
    ok(len(log.splitlines()) == 2, "the edit is committed, with a message",
       log)


run(question, edit)
