"""Random small templates: expressions of a given type, most of them valid,
within statements."""

import random

from jinja_features import VARS

STRINGS = ['', 'a', 'abc', ' ', ', ', 'l', 'o', 'Hello', '<|im_start|>',
           '\\n', 'é', 'A b', 'n', ' x ', 'a,b,c', '42', '1.5', "it's",
           'ß', '日本', '<b>&', 'aXbX']

# patterns by the type of their result; S, I, L, D, B, A stand for expressions
# of a type (string, integer, list, dict, bool, any)
RULES = {
    'S': ['"%s"', '"%s"', 'text', 'lines', 'uni', 'blank', 'html', 'quote',
          'num', 'user.name', '(S + S)', '(S ~ A)', '(A ~ A)', '(S * 2)',
          'S | upper', 'S | lower', 'S | title', 'S | capitalize',
          'S | trim', 'S | replace(S, S)', 'S | replace(S, S, 1)',
          'A | string', 'A | tojson', 'L | tojson(indent=2)',
          'D | tojson(sort_keys=true)', 'A | tojson(separators=(",", ":"))',
          'L | join(S)', 'L | join', 'S | indent', 'S | indent(2, true)',
          'S | truncate(6, true, "")', 'S | escape',
          '(S if B else S)', 'S[0]', 'S[-1]', 'S[1:]',
          'S[:2]', 'S[::-1]', 'S[I:]', 'S[:I]', 'S.upper()', 'S.lower()',
          'S.strip()', 'S.strip(S)', 'S.lstrip(S)', 'S.rstrip()',
          'S.replace(S, S)', 'S.title()', 'S.capitalize()',
          'S.removeprefix(S)', 'S.removesuffix(S)', 'S.join(words)',
          'L | first | string', 'S | default(S)',
          'missing | default(S)', 'L | map("string") | join(S)',
          'S | safe', 'S.split(S) | last', 'S.partition("a")[0]',
          '(S | safe) + S', 'D.a | string'],
    'I': ['1', '2', '-1', '0', '3', 'neg', 'zero', 'user.age', 'L | length',
          'S | length', '(I + I)', '(I - I)', '(I * 2)', '(I // 2)',
          '(I % 3)', '(-I)', 'I | abs', 'S | int', 'S.find(S)',
          'S.count("a")', 'S | wordcount', 'list | sum', 'list | max',
          'list | min', '(I if B else I)', 'S.rfind("o")',
          'D | length', 'half | round | int', '(I ** 2)'],
    'L': ['list', 'empty', 'words', 'nested', 'people', 'user.tags', '[]',
          '[A]', '[A, A]', '[S, S, S]', '(L + [A])', 'L[1:]', 'L[:1]',
          'L[::-1]', 'L | reverse | list', 'S | list', 'S.split()',
          'S.split(",")', 'S.split("a", 1)', 'S.rsplit("b", 1)',
          'S.splitlines()', 'D | list', 'D.items() | list',
          'D.values() | list', 'D | items | list', 'D | dictsort',
          'words | sort', 'list | sort(reverse=B)', 'L | unique | list',
          'words | map("upper") | list', 'L | map("string") | list',
          'people | map(attribute="n") | list', 'L | select | list',
          'L | reject("none") | list', 'L | select("string") | list',
          'L | reject("in", L) | list', 'L | select("equalto", A) | list',
          'people | selectattr("a", "gt", I) | list', 
          'people | rejectattr("r") | list', 
          'range(3) | list', '(L if B else L)', '(1, A)', 'L * 2',
          'L | list', 'L | tojson | list'],
    'D': ['d', 'user', '{}', '{"a": A, "b": A}', '{S: A}', 'people[0]',
          'dict(a=A)', 'dict(d, z=A)', '(D if B else D)', 'D | default({})'],
    'B': ['yes', 'no', 'true', 'false', 'not A', '(A == A)', '(A != A)',
          '(I < I)', '(I >= I)', '(S < S)', '(A in L)', '(S in S)',
          '(S not in S)', '(S in D)', '(B and B)', '(B or B)',
          '(A is defined)', '(A is string)', '(A is none)',
          '(A is mapping)', '(A is iterable)', '(A is sequence)',
          '(A is number)', '(A is not integer)', '(I is odd)',
          '(I is divisibleby 2)', '(A is boolean)', '(S is lower)',
          'S.startswith(S)', 'S.endswith(("a", S))', 'S.isdigit()',
          'S.isalpha()', 'S.isspace()', '(I < I < I)', '(D.x is defined)',
          '(missing is undefined)', '(A is sameas none)'],
    'A': ['S', 'S', 'I', 'L', 'D', 'B', 'nothing', 'none', 'half', 'x', 'y',
          'D.a', 'D.get("a")', 'D.get(S, A)', 'D["b"]', 'L[0]', 'L | first',
          'L | last', '(A or A)', '(A and A)', '(A if B else A)',
          'A | default(A)', 'A | default(A, true)', 'user.tags[I]',
          '(S, A)', 'I / 2', 'half * I', 'S | float', 'missing',
          'D.zz', 'half | round(1)'],
}



class Generator:
    def __init__(self, seed):
        self.r = random.Random(seed)

    def expr(self, type, depth=0):
        r = self.r
        if r.randrange(60) == 0:
            type = r.choice('SILDBA')
        if depth > 4 or r.randrange(depth + 2) > 2:
            pattern = r.choice(RULES[type][:3]) if type != 'A' else 'x'
            if type == 'D':
                pattern = 'd'
        else:
            pattern = r.choice(RULES[type])
        return self.fill(pattern, depth)

    def fill(self, pattern, depth):
        out, i, quoted = '', 0, False
        while i < len(pattern):
            c = pattern[i]
            alone = (c in RULES and not pattern[i - 1:i].isalnum()
                     and not pattern[i + 1:i + 2].isalnum())
            if c == '"':
                quoted = not quoted
            if pattern[i:i + 2] == '%s' and pattern == '"%s"':
                out += self.r.choice(STRINGS)
                i += 1
            elif pattern[i:i + 2] == '%%':
                out += '%'
                i += 1
            elif alone and not quoted:
                e = self.expr(c, depth + 1)
                out += '(%s)' % e if not e.isalnum() and pattern != c else e
            else:
                out += c
            i += 1
        return out

    def tag(self, text):
        r = self.r
        return '{%%%s %s %s%%}' % (r.choice(['', '', '-', '+']), text,
                                   r.choice(['', '', '-', '+']))

    def text(self):
        return self.r.choice(['', 'x', ' ', '\n', '  \n', 'ab\n  ', '\n\n',
                              '<|t|>', ' é '])

    def body(self, depth):
        return self.text() + ''.join(
            self.statement(depth + 1) + self.text()
            for _ in range(self.r.randrange(1, 3)))

    def statement(self, depth=0):
        r = self.r
        k = r.randrange(14 if depth < 3 else 5)
        if k < 4:
            return '{{%s %s %s}}' % (r.choice(['', '', '-']),
                                     self.expr(r.choice('SSSAILB')),
                                     r.choice(['', '', '-']))
        if k == 4:
            return self.tag('set %s = %s' % (r.choice('xy'),
                                             self.expr('A')))
        if k < 7:
            out = self.tag('if ' + self.expr('B')) + self.body(depth)
            if r.randrange(2):
                out += self.tag('elif ' + self.expr('B')) + self.body(depth)
            if r.randrange(2):
                out += self.tag('else') + self.body(depth)
            return out + self.tag('endif')
        if k < 10:
            cond = ' if ' + self.expr('B', 2) if r.randrange(4) == 0 else ''
            out = self.tag('for x in %s%s' % (self.expr('L', 1), cond))
            out += self.body(depth)
            if r.randrange(3) == 0:
                out += '{{ loop.%s }}' % r.choice(
                    ['index', 'first', 'last', 'length', 'previtem',
                     'nextitem', 'revindex0'])
            if r.randrange(6) == 0:
                out += self.tag('if %s' % self.expr('B', 2)) \
                    + self.tag(r.choice(['break', 'continue'])) \
                    + self.tag('endif')
            if r.randrange(3) == 0:
                out += self.tag('else') + self.body(depth)
            return out + self.tag('endfor')
        if k == 10:
            return self.tag('set %s' % r.choice('xy')) + self.body(depth) \
                + self.tag('endset')
        if k == 11:
            return self.tag('filter %s' % r.choice(
                ['upper', 'trim', 'indent', 'replace("a", "b")'])) \
                + self.body(depth) + self.tag('endfilter')
        if k == 12:
            return self.tag('macro m(x, y=%s)' % self.expr('A', 3)) \
                + self.body(depth) + self.tag('endmacro') \
                + '{{ m(%s) }}{{ m(%s, y=%s) }}' % tuple(
                    self.expr('A', 2) for _ in range(3))
        return self.tag('with x = %s' % self.expr('A', 2)) \
            + self.body(depth) + self.tag('endwith')

    def case(self):
        return ''.join(self.text() + self.statement()
                       for _ in range(self.r.randrange(1, 4))), VARS
