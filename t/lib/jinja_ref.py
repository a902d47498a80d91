#!/usr/bin/env python3
"""Cases for the template interpreter, with the results of Python's jinja2,
configured as in Hugging Face transformers.  Prints one JSON object per line:
name, template, vars, and out, or error (and raised, if raise_exception was
called).  Exit status 77: jinja2 is missing.

usage: jinja_ref.py features
       jinja_ref.py random [--seed N] [--count N]
       jinja_ref.py templates DIR
       jinja_ref.py roundtrip FILE.jsonl DIR
       jinja_ref.py chats DIR
"""

import argparse
import copy
import datetime
import json
import os
import re
import sys
import warnings

try:
    import jinja2
    import jinja2.compiler
    import jinja2.ext
    import jinja2.sandbox
except ImportError:
    sys.exit(77)

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

warnings.simplefilter('ignore')

NOW = 1753862400            # 2025-07-30 08:00:00 UTC


class Raised(jinja2.exceptions.TemplateError):
    """raise_exception() was called"""


class Generation(jinja2.ext.Extension):
    tags = {'generation'}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(['name:endgeneration'],
                                       drop_needle=True)
        call = self.call_method('_call')
        return jinja2.nodes.CallBlock(call, [], [], body).set_lineno(line)

    def _call(self, caller):
        return caller()


def raise_exception(message):
    raise Raised(message)


def tojson(x, ensure_ascii=False, indent=None, separators=None,
           sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent,
                      separators=separators, sort_keys=sort_keys)


def strftime_now(fmt):
    return datetime.datetime.fromtimestamp(NOW).strftime(fmt)


class TemplateDict:
    def __call__(self, *args, **kwargs):
        return dict(*args, **kwargs)


class TemplateNamespace(jinja2.utils.Namespace):
    def __init__(*args, **kwargs):
        self, args = args[0], args[1:]
        attrs = dict(*args, **kwargs)
        for name in attrs:
            TemplateNamespace._check(name)
        jinja2.utils.Namespace.__init__(self, attrs)

    def __setitem__(self, name, value):
        TemplateNamespace._check(name)
        jinja2.utils.Namespace.__setitem__(self, name, value)

    @staticmethod
    def _check(name):
        if isinstance(name, str) and name.startswith('_'):
            raise jinja2.exceptions.SecurityError(name)


class Generator(jinja2.compiler.CodeGenerator):
    """{% set x.y %} may set members of dictionaries"""

    def writeline(self, x, node=None, extra=0):
        if x.startswith('if not isinstance(') and x.endswith(', Namespace):'):
            x = x.replace(', Namespace):', ', (Namespace, dict)):')

        super().writeline(x, node, extra)


class Sandbox(jinja2.sandbox.ImmutableSandboxedEnvironment):
    """as in transformers, but methods may change lists and dictionaries"""
    code_generator_class = Generator
    REFUSED = ('popitem', 'sort')

    def is_safe_attribute(self, obj, attr, value):
        return (jinja2.sandbox.SandboxedEnvironment.is_safe_attribute(
                    self, obj, attr, value)
                and not (isinstance(obj, (list, dict))
                         and attr in self.REFUSED))


def environment():
    env = Sandbox(
        trim_blocks=True, lstrip_blocks=True,
        extensions=[Generation, jinja2.ext.loopcontrols])
    env.filters['tojson'] = tojson
    env.globals['raise_exception'] = raise_exception
    env.globals['strftime_now'] = strftime_now
    env.globals['dict'] = TemplateDict()
    env.globals['namespace'] = TemplateNamespace
    return env


ENV = environment()
COMPILED = {}


def render(template, variables):
    """{'out': ...} or {'error': ..., 'raised': ...}"""
    try:
        if template not in COMPILED:
            COMPILED[template] = ENV.from_string(template)
        out = COMPILED[template].render(**copy.deepcopy(variables))
        out.encode('utf-8')
        return {'out': out}
    except Raised as e:
        return {'error': str(e), 'raised': str(e)}
    except Exception as e:                      # templates may raise any
        return {'error': '%s: %s' % (type(e).__name__, e)}


def emit(name, template, variables):
    case = {'name': name, 'template': template, 'vars': variables,
            'now': NOW}
    case.update(render(template, variables))
    print(json.dumps(case, ensure_ascii=False))


def features():
    from jinja_features import CASES, VARS
    for i, template in enumerate(CASES):
        emit('feature %d' % i, template, VARS)


def random_cases(seed, count):
    from jinja_random import Generator
    g = Generator(seed)
    i = 0
    while i < count:
        template, variables = g.case()
        # jinja2 folds slices of constants into undefined values
        if re.search(r'(\d|none|true|false)\)*\[', template):
            continue
        COMPILED.clear()
        out = render(template, variables).get('out', '')
        # addresses and large integers only exist in Python
        if re.search(r' at 0x|[0-9]{17}', out):
            continue
        emit('random %d/%d' % (seed, i), template, variables)
        i += 1


def read(path):
    with open(path, encoding='utf-8') as f:
        return f.read()


def templates(folder):
    from jinja_chats import conversations
    for name in sorted(os.listdir(folder)):
        if not name.endswith('.jinja'):
            continue
        source = read(os.path.join(folder, name))
        for title, variables in conversations():
            emit('%s: %s' % (name, title), source, variables)


# conversations that llm_chat_render() normalises, so that results differ
UNEVEN = re.compile(r'parts|no tokens|, text|null|no content|developer|image|mapping|'
                    r'^call, |^call and|^parallel|^calls in')


def chats(folder):
    """Requests, in the form that llm_chat_render() takes, that it renders as
    the reference does, without normalising them."""
    from jinja_chats import conversations
    for name in sorted(os.listdir(folder)):
        if not name.endswith('.jinja'):
            continue
        source = read(os.path.join(folder, name))
        for title, variables in conversations():
            if UNEVEN.search(title):
                continue
            result = render(source, variables)
            if 'out' not in result:
                continue
            known = ('messages', 'tools', 'documents', 'bos_token',
                     'eos_token', 'add_generation_prompt')
            request = {k: v for k, v in variables.items()
                       if k in known and v is not None}
            request['chat_template_kwargs'] = {
                k: v for k, v in variables.items() if k not in known}
            print(json.dumps({'name': '%s: %s' % (name, title),
                              'template': source, 'request': request,
                              'now': NOW, 'out': result['out']},
                             ensure_ascii=False))


def day_of(prompt):
    """The time for strftime_now(): noon of the date in the prompt, as some
    templates write the date, or NOW."""
    m = re.search(r"Today's Date: (\w+ \d+, \d+)", prompt)
    if m is None:
        return NOW
    day = datetime.datetime.strptime(m.group(1), '%B %d, %Y')
    return int(day.replace(hour=12).timestamp())


def roundtrip(path, folder):
    with open(path, encoding='utf-8') as f:
        for line in f:
            c = json.loads(line)
            variables = dict(c['request'])
            variables.setdefault('tools', None)
            variables.update(documents=None, bos_token='<s>',
                             eos_token='</s>', add_generation_prompt=True)
            variables.update(variables.pop('chat_template_kwargs', {}))
            print(json.dumps({
                'name': '%s: %s' % (c['template'], c['case']),
                'template': read(os.path.join(folder, c['template'])),
                'vars': variables, 'out': c['prompt'],
                'now': day_of(c['prompt'])}, ensure_ascii=False))


def main():
    p = argparse.ArgumentParser()
    sub = p.add_subparsers(dest='what', required=True)
    sub.add_parser('features')
    r = sub.add_parser('random')
    r.add_argument('--seed', type=int, default=1)
    r.add_argument('--count', type=int, default=100)
    t = sub.add_parser('templates')
    t.add_argument('folder')
    t = sub.add_parser('chats')
    t.add_argument('folder')
    t = sub.add_parser('roundtrip')
    t.add_argument('path')
    t.add_argument('folder')
    a = p.parse_args()

    sys.stdout.reconfigure(encoding='utf-8')

    if a.what == 'features':
        features()
    elif a.what == 'random':
        random_cases(a.seed, a.count)
    elif a.what == 'templates':
        templates(a.folder)
    elif a.what == 'chats':
        chats(a.folder)
    else:
        roundtrip(a.path, a.folder)
    return 0


if __name__ == '__main__':
    sys.exit(main())
