"""What PTX instructions compute, as C.

A rule is a pattern of the whole opcode, the types of its operands, the result
first, and a C expression of the others.  A type is a type of PTX, or the name
of a group of the pattern with a letter that changes it:

    t    the type in group t
    t:u  unsigned, of the same size     t:s  signed
    t:b  twice as wide                  t:w  twice as wide, unsigned

Functions in the expressions are those of run.h.  An opcode that has no rule
here and no method in translate.py is an error.
"""

import re

INT = r'[usb](?:16|32|64)'
SIGNED = r's(?:16|32|64)'
UNSIGNED = r'[ub](?:16|32|64)'
FLOAT = r'f(?:32|64)'

COMPARE = {'eq': '==', 'ne': '!=', 'lt': '<', 'le': '<=', 'gt': '>',
           'ge': '>=', 'lo': '<', 'ls': '<=', 'hi': '>', 'hs': '>='}

OPERATOR = {'add': '+', 'sub': '-', 'mul': '*', 'div': '/', 'and': '&',
            'or': '|', 'xor': '^', 'shl': '<<', 'shr': '>>'}


def rule(pattern, types, value):
    return (re.compile(pattern.replace('INT', INT)
                       .replace('SIGNED', SIGNED)
                       .replace('UNSIGNED', UNSIGNED)
                       .replace('FLOAT', FLOAT)), types.split(), value)


RULES = [
    # sums and products of integers; unsigned, as these wrap around

    rule(r'(?P<op>add|sub)\.(?P<t>INT)', 't:u t:u t:u', '{a} {op} {b}'),
    rule(r'mul\.lo\.(?P<t>INT)', 't:u t:u t:u', 'mul_{t:u}({a}, {b})'),
    rule(r'mul\.hi\.(?P<t>[us]32|[us]64|u16)', 't t t', 'mulhi_{t}({a}, {b})'),
    rule(r'mul\.wide\.(?P<t>[us](?:16|32))', 't:b t t',
         '({t:c}) {a} * ({t:c}) {b}'),
    rule(r'mad\.lo\.(?P<t>INT)', 't:u t:u t:u t:u',
         'mul_{t:u}({a}, {b}) + {c}'),
    rule(r'mad\.wide\.(?P<t>[us](?:16|32))', 't:b t t t:b',
         '({t:c}) {a} * ({t:c}) {b} + {c}'),
    rule(r'(?P<op>div|rem)\.(?P<t>[us](?:16|32|64))', 't t t',
         '{op}_{t}({a}, {b})'),
    rule(r'(?P<op>min|max)\.(?P<t>[us](?:16|32|64))', 't t t',
         '{a} {less} {b} ? {a} : {b}'),
    rule(r'abs\.(?P<t>SIGNED)', 't:u t', '{a} < 0 ? -(uint64_t) {a} : {a}'),
    rule(r'neg\.(?P<t>SIGNED)', 't:u t:u', '0 - {a}'),

    # bits

    rule(r'(?P<op>and|or|xor)\.(?P<t>b(?:16|32|64))', 't t t',
         '{a} {op} {b}'),
    rule(r'(?P<op>and|or|xor)\.pred', 'pred pred pred', '{a} {op} {b}'),
    rule(r'not\.(?P<t>b(?:16|32|64))', 't t', '~{a}'),
    rule(r'not\.pred', 'pred pred', '!{a}'),
    rule(r'(?P<op>shl|shr)\.(?P<t>[usb](?:16|32|64))', 't t u32',
         '{op}_{t:k}({a}, {b})'),
    rule(r'shf\.(?P<op>[lr])\.(?P<m>wrap|clamp)\.b32', 'b32 b32 b32 u32',
         'shf_{op}_{m}({a}, {b}, {c})'),
    rule(r'bfe\.(?P<t>[us](?:32|64))', 't t u32 u32',
         'bfe_{t}({a}, {b}, {c})'),
    rule(r'bfi\.(?P<t>b(?:32|64))', 't t t u32 u32',
         'bfi_{t}({a}, {b}, {c}, {d})'),
    rule(r'prmt\.b32', 'b32 b32 b32 b32', 'ptx_permute({a}, {b}, {c})'),
    rule(r'popc\.(?P<t>b(?:32|64))', 'u32 t', '__builtin_popcountll({a})'),
    rule(r'clz\.(?P<t>b(?:32|64))', 'u32 t', 'clz_{t}({a})'),
    rule(r'brev\.(?P<t>b32)', 't t', 'brev_{t}({a})'),

    # floats.  Sums and products without .rn may be fused by ptxas; here they
    # are not.

    rule(r'(?P<op>add|sub|mul)(?:\.rn)?\.(?P<t>FLOAT)', 't t t',
         '{a} {op} {b}'),
    rule(r'add\.rz\.f32', 'f32 f32 f32', 'add_rz({a}, {b})'),
    rule(r'mul\.f16x2', 'b32 b32 b32', 'mul_f16x2({a}, {b})'),
    rule(r'fma\.rn\.f16x2', 'b32 b32 b32 b32', 'fma_f16x2({a}, {b}, {c})'),
    rule(r'(?P<op>div)\.rn\.(?P<t>FLOAT)', 't t t', '{a} / {b}'),
    rule(r'div\.(?:full|approx)\.f32', 'f32 f32 f32', '{a} / {b}'),
    rule(r'fma\.rn\.f32', 'f32 f32 f32 f32', '__builtin_fmaf({a}, {b}, {c})'),
    rule(r'fma\.rn\.f64', 'f64 f64 f64 f64', '__builtin_fma({a}, {b}, {c})'),
    rule(r'fma\.rm\.f32', 'f32 f32 f32 f32', 'fma_rm({a}, {b}, {c})'),
    rule(r'(?P<op>min|max)\.(?P<t>FLOAT)', 't t t', '{op}_{t}({a}, {b})'),
    rule(r'abs\.f32', 'f32 f32', '__builtin_fabsf({a})'),
    rule(r'abs\.f64', 'f64 f64', '__builtin_fabs({a})'),
    rule(r'neg\.(?P<t>FLOAT)', 't t', '-{a}'),
    rule(r'copysign\.f32', 'f32 f32 f32', '__builtin_copysignf({b}, {a})'),
    rule(r'copysign\.f64', 'f64 f64 f64', '__builtin_copysign({b}, {a})'),
    rule(r'rcp\.(?:rn|approx)\.(?P<t>FLOAT)', 't t', '1 / {a}'),
    rule(r'rcp\.approx\.ftz\.f32', 'f32 f32', 'ftz(1 / ftz({a}))'),
    rule(r'rcp\.approx\.ftz\.f64', 'f64 f64', 'rcp_f64({a})'),
    rule(r'sqrt\.(?:rn|approx)\.f32', 'f32 f32', '__builtin_sqrtf({a})'),
    rule(r'sqrt\.rn\.f64', 'f64 f64', '__builtin_sqrt({a})'),
    rule(r'rsqrt\.approx\.f32', 'f32 f32', '1 / __builtin_sqrtf({a})'),
    rule(r'ex2\.approx\.f32', 'f32 f32', 'exp2f({a})'),
    rule(r'ex2\.approx\.ftz\.f32', 'f32 f32', 'ftz(exp2f(ftz({a})))'),
    rule(r'lg2\.approx\.f32', 'f32 f32', 'log2f({a})'),
    rule(r'lg2\.approx\.ftz\.f32', 'f32 f32', 'log2f(ftz({a}))'),
    rule(r'(?P<f>sin|cos)\.approx\.f32', 'f32 f32', '{f}f({a})'),

    # comparisons

    rule(r'setp\.(?P<c>eq|ne|lt|le|gt|ge|lo|ls|hi|hs)\.(?P<t>INT)',
         'pred t t', '{a} {c} {b}'),
    rule(r'setp\.(?P<c>eq|lt|le|gt|ge)\.(?P<t>FLOAT)', 'pred t t',
         '{a} {c} {b}'),
    rule(r'setp\.ne\.(?P<t>FLOAT)', 'pred t t', '{a} < {b} || {a} > {b}'),
    rule(r'setp\.(?P<c>eq|ne|lt|le|gt|ge)u\.(?P<t>FLOAT)', 'pred t t',
         'nan_{t}({a}, {b}) || {a} {c} {b}'),
    rule(r'setp\.nan\.(?P<t>FLOAT)', 'pred t t', 'nan_{t}({a}, {b})'),
    rule(r'setp\.num\.(?P<t>FLOAT)', 'pred t t', '!nan_{t}({a}, {b})'),
    rule(r'selp\.(?P<t>[usbf](?:16|32|64))', 't t t pred', '{c} ? {a} : {b}'),

    # conversions

    rule(r'cvt\.(?P<d>[us](?:8|16|32|64))\.(?P<t>[us](?:8|16|32|64))', 'd t',
         '{a}'),
    rule(r'cvt\.rn\.(?P<d>FLOAT)\.(?P<t>[us](?:8|16|32|64))', 'd t', '{a}'),
    rule(r'cvt\.rn\.f32\.f64', 'f32 f64', '(float) {a}'),
    rule(r'cvt\.f64\.f32', 'f64 f32', '{a}'),
    rule(r'cvt\.f32\.f16', 'f32 b16', 'f16_f32({a})'),
    rule(r'cvt\.f32\.bf16', 'f32 b16', 'float_of((uint32_t) {a} << 16)'),
    rule(r'cvt\.rn\.f16\.f32', 'b16 f32', 'f32_f16({a})'),
    rule(r'cvt\.rn\.bf16\.f32', 'b16 f32', 'f32_bf16({a})'),
    rule(r'cvt\.rn\.(?P<d>b?f16)x2\.f32', 'b32 f32 f32',
         '(uint32_t) f32_{d}({a}) << 16 | f32_{d}({b})'),
    rule(r'cvt\.rn\.f16x2\.e4m3x2', 'b32 b16', 'e4m3x2_f16x2({a})'),
    rule(r'cvt\.rn\.satfinite\.e4m3x2\.f32', 'b16 f32 f32',
         'f32_e4m3x2({a}, {b})'),
    rule(r'cvt\.(?P<r>rzi|rni|rmi|rpi)\.(?P<d>[us](?:32|64))\.(?P<t>FLOAT)',
         'd t', 'int_{d}({r}({a}))'),
    rule(r'cvt\.(?P<r>rzi|rni|rmi|rpi)\.(?P<d>FLOAT)\.(?P<t>FLOAT)', 'd t',
         '{r}({a})'),
    rule(r'cvt\.sat\.f32\.f32', 'f32 f32', 'saturate({a})'),

    # addresses: a generic address is the host's

    rule(r'cvta\.(?:to\.)?(?:global|local|const)\.u64', 'u64 u64', '{a}'),
    rule(r'cvta\.shared\.u64', 'u64 u64', 'ptx_generic((uint32_t) {a})'),
    rule(r'cvta\.to\.shared\.u64', 'u64 u64', 'ptx_to_shared({a})'),

    rule(r'mov\.(?P<t>[usbf](?:16|32|64))', 't t', '{a}'),
    rule(r'mov\.pred', 'pred pred', '{a}'),
]


def size(kind):
    """Bytes of a type."""

    if kind.endswith('x2'):
        return 2 if kind == 'e4m3x2' else 4

    return int(re.search(r'(\d+)$', kind).group(1)) // 8


def changed(kind, change):
    """A type changed as the letter says."""

    if change in ('u', 's'):
        return change + str(8 * size(kind))

    if change == 'b':
        return kind[0] + str(16 * size(kind))

    return 'u' + str(16 * size(kind))


def c_type(kind):
    """The type in C."""

    if kind == 'pred':
        return 'int'

    if kind in ('f32', 'f64'):
        return 'float' if kind == 'f32' else 'double'

    return f"{'' if kind[0] == 's' else 'u'}int{8 * size(kind)}_t"


def find(opcode):
    """Types and expression of an opcode, or None."""

    for pattern, types, value in RULES:
        match = pattern.fullmatch(opcode)

        if match:
            break
    else:
        return None

    groups = match.groupdict()

    def kind(name):
        name, _, change = name.partition(':')
        base = groups.get(name, name)

        return changed(base, change) if change else base

    words = {name: text for name, text in groups.items() if text}
    t = words.get('t')

    if t and t[0] in 'usb':
        value = value.replace('{t:u}', changed(t, 'u'))
        value = value.replace('{t:c}', c_type(changed(t, 'b')))
        value = value.replace('{t:k}', ('s' if t[0] == 's' else 'u') + t[1:])

    if 'op' in words:
        value = value.replace('{less}', '<' if words['op'] == 'min' else '>')

        if ' {op} ' in value:
            words['op'] = OPERATOR[words['op']]

    if 'c' in words:
        value = value.replace(' {c} ', f" {COMPARE[words['c']]} ")
        del words['c']

    for name, text in words.items():
        value = value.replace('{' + name + '}', text)

    return [kind(name) for name in types], value
