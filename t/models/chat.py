"""Renders the chat template as Hugging Face transformers does.

Used by train.py, and by eval.py when it runs without a server.  The template is
template.jinja; the GGUF file has a copy.
"""

import json
from pathlib import Path

import jinja2
from jinja2.ext import loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

TEMPLATE = Path(__file__).with_name("template.jinja")


def _tojson(value, ensure_ascii=False, indent=None):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent)


def _raise(message):
    raise jinja2.exceptions.TemplateError(message)


def compile_template(source=None):
    """The compiled template: template.jinja, or source if it is given."""
    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True,
                                        extensions=[loopcontrols])
    env.filters["tojson"] = _tojson
    env.globals["raise_exception"] = _raise
    return env.from_string(source or TEMPLATE.read_text(encoding="utf-8"))


def render(template, messages, tools=None, thinking=None, prompt=True):
    """The prompt of a conversation; thinking None: enable_thinking is not
    set."""
    extra = {} if thinking is None else {"enable_thinking": thinking}
    return template.render(messages=messages, tools=tools or None,
                           add_generation_prompt=prompt, **extra)
