#!/usr/bin/env python3
"""Translates PTX to plain C for the emulator of t/gpu/emu.

    translate.py IN.ptx OUT.c       one file of nvcc -ptx
    translate.py --index OUT.c [--some] NAME...
                                    the list of a library's modules, by name;
                                    --some: kernels that it lacks are no error

Registers become local variables, basic blocks labels.  What reads or writes
memory, or needs other threads, calls run.h's functions with the line of the
PTX, which check it.  An instruction that is not known is an error that names
it: nothing is left out silently.
"""

import math
import os
import re
import sys

import rules
from instructions import Instructions, Unknown, name_in_c, split

# first address of the shared window, so that 0 is no valid address
WINDOW = 1024

SPECIAL = {f'%{name}.{axis}': f'{value}[{i}]'
           for name, value in (('tid', 'ptx_thread()->tid'),
                               ('ctaid', 'ptx_block->bid'),
                               ('ntid', 'ptx_block->threads'),
                               ('nctaid', 'ptx_block->grid'))
           for i, axis in enumerate('xyz')}
SPECIAL['%laneid'] = 'ptx_thread()->lane'
SPECIAL['WARP_SZ'] = '32'

# the start of a kernel or a function, up to its body
HEAD = re.compile(r'(\.\w+\s+)*\.(entry|func)\b')

# directives that end with their line
LINE = re.compile(r'\.(version|target|address_size|file|loc|section)\b')


def statements(text):
    """Yields (line, statement): up to a semicolon, a brace or a label, or a
    directive that is a line."""

    pending, start = '', 0

    for number, line in enumerate(text.split('\n'), 1):
        line = re.sub(r'//.*', '', line).strip()

        if not pending.strip():
            if line.startswith('.section'):
                return                      # debugging data, at the end

            if LINE.match(line):
                yield number, line
                continue

        for c in line + ' ':
            if not pending.strip():
                pending, start = '', number

            if c == '{' and (not pending or HEAD.match(pending)):
                if pending:
                    yield start, pending.strip()
                yield number, '{'
                pending = ''
            elif c == '}' and not pending:
                yield number, '}'
            elif c == ';':
                yield start, pending.strip()
                pending = ''
            elif c == ':' and re.fullmatch(r'[$\w]+', pending):
                yield number, pending + ':'
                pending = ''
            else:
                pending += c


class Params:
    """Offsets of parameters in a buffer, as CUDA's ABI has them."""

    def __init__(self, text):
        self.at, self.size = {}, 0

        for each in split(text):
            match = re.fullmatch(r'\.param(?:\s+\.align\s+(\d+))?\s+\.(\w+)\s+'
                                 r'(?:\.ptr\s+(?:\.align\s+\d+\s+)?)?'
                                 r'(\w+)(?:\[(\d+)\])?', each)

            if not match:
                raise Unknown(f'parameter {each}')

            align, kind, name, count = match.groups()
            align = int(align or rules.size(kind))
            self.size = (self.size + align - 1) // align * align
            self.at[name] = self.size
            self.size += rules.size(kind) * int(count or 1)


class Module:
    """What is translated of one file."""

    def __init__(self, name):
        self.name = name
        self.files = {}
        self.sites = []             # (line, file, line there, file, line)
        self.kernels = []
        self.variables = []         # names of device variables
        self.out = []
        self.shared = {}            # offset of a static shared variable
        self.shared_size = 0

    def place(self, text):
        """Gives a static shared variable its place."""

        match = re.fullmatch(r'\.shared(?:\s+\.align\s+(\d+))?\s+\.(\w+)\s+'
                             r'(\w+)(?:\[(\d+)\])?', text)

        if not match:
            raise Unknown(text)

        align, kind, name, count = match.groups()
        align = int(align or rules.size(kind))
        start = (self.shared_size + align - 1) // align * align
        self.shared[name] = start
        self.shared_size = start + rules.size(kind) * int(count or 1)

    def variable(self, text):
        """A .global or .const variable of the file."""

        match = re.fullmatch(r'(?:\.visible\s+|\.weak\s+)?\.(?:global|const)'
                             r'(?:\s+\.align\s+(\d+))?\s+\.(\w+)\s+(\w+)'
                             r'(?:\[(\d*)\])?(?:\s*=\s*\{?([^}]*)\}?)?', text)

        if not match:
            raise Unknown(text)

        align, kind, name, count, values = match.groups()
        self.variables.append(name)
        self.out.append(f'static {rules.c_type(kind)} {name}[{count or 1}] '
                        f'__attribute__((aligned({align or 8}))) = '
                        f'{{ {values or 0} }};\n')

    def read(self, text):
        function = None

        for line, s in statements(text):
            if s.startswith('.file'):
                number, path = re.match(r'\.file\s+(\d+)\s+"([^"]*)"',
                                        s).groups()
                path = os.path.normpath(path)
                here = os.getcwd() + os.sep
                self.files[int(number)] = (path[len(here):]
                                           if path.startswith(here) else path)
            elif re.match(r'\.loc\b', s):
                self.locate(line, s)
            elif LINE.match(s):
                pass
            elif function:
                function.statement(line, s)

                if function.depth == 0:
                    self.out += function.code()
                    function = None
            elif s.startswith('.extern .shared'):
                self.shared[re.search(r'(\w+)\[\]$', s).group(1)] = None
            elif s.startswith('.shared'):
                self.place(s)
            elif re.match(r'(\.\w+\s+)?\.(global|const)\b', s):
                self.variable(s)
            elif HEAD.match(s):
                function = Function(self, s)
            else:
                raise Unknown(f'line {line}: {s}')

    def locate(self, line, text):
        at = re.match(r'\.loc\s+(\d+)\s+(\d+)', text).groups()
        into = re.search(r'inlined_at (\d+) (\d+)', text)

        if at[1] != '0':
            self.sites.append((line, *at, *(into.groups() if into
                                            else (0, 0))))

    def written(self):
        name = name_in_c(self.name)
        files = max(self.files, default=0) + 1
        out = ['#include "t/gpu/ptx/run.h"\n\n'] + self.out

        out.append('static const char *const  files[] = {\n')
        out += [f'    "{self.files.get(i, "?")}",\n' for i in range(files)]
        out.append('};\n\nstatic const ptx_site_t  sites[] = {\n')
        out += [f"    {{ {', '.join(map(str, s))} }},\n" for s in self.sites]
        out.append('    { 0, 0, 0, 0, 0 }\n};\n\n'
                   'static const ptx_variable_t  variables[] = {\n')
        out += [f'    {{ {v}, sizeof({v}) }},\n' for v in self.variables]
        out.append('    { NULL, 0 }\n};\n\n'
                   'static const ptx_kernel_t  kernels[] = {\n')
        out += [f'    {{ "{k.name}", {k.c_name}, {k.params.size}, '
                f'{k.shared_size()}, {k.threads}, &ptx_module_{name} }},\n'
                for k in self.kernels]
        out.append('    { NULL, NULL, 0, 0, 0, NULL }\n};\n\n'
                   f'const ptx_module_t  ptx_module_{name} = {{\n'
                   f'    "{self.name}.ptx", files, sites, {len(self.sites)}, '
                   'variables, kernels\n};\n')

        return (f'#include "t/gpu/ptx/types.h"\n\n'
                f'extern const ptx_module_t  ptx_module_{name};\n\n'
                + ''.join(out))


class Function(Instructions):
    """A kernel or a function, translated statement by statement."""

    def __init__(self, module, head):
        match = re.fullmatch(r'((?:\.\w+\s+)*)\.(entry|func)\s*(?:\((.*?)\))?'
                             r'\s*(\w+)\s*\((.*?)\)(.*)', head, re.S)

        if not match:
            raise Unknown(head)

        _, kind, result, self.name, params, rest = match.groups()
        threads = re.search(r'\.(?:max|req)ntid (\d+), (\d+), (\d+)', rest)

        self.module = module
        self.is_kernel = kind == 'entry'
        self.c_name = ('kernel_' if self.is_kernel else '') + self.name
        self.params = Params(params)
        self.result = Params(result or '')
        self.threads = 0
        self.depth = 0
        self.registers = {}         # name: type
        self.declared = []          # variables of the whole function
        self.body = []
        self.buffers = {}           # parameters of calls and local memory
        self.line = 0

        if threads:
            self.threads = math.prod(map(int, threads.groups()))

        if self.is_kernel:
            module.kernels.append(self)

    def shared_size(self):
        return self.module.shared_size

    def signature(self):
        if self.is_kernel:
            return f'{self.c_name}(const uint8_t *params)'

        given = ['uint8_t *result'] if self.result.at else []
        given += [f'const uint8_t *{p}' for p in self.params.at]

        return f"{self.c_name}({', '.join(given) or 'void'})"

    def code(self):
        return [f'static void\n{self.signature()}\n{{\n', *self.declared,
                *self.body, '}\n\n']

    # statements

    def statement(self, line, text):
        self.line = line

        try:
            self.translate(text)
        except Unknown as e:
            raise Unknown(f'line {line}: {e}') from e

    def translate(self, text):
        if text == '{':
            self.depth += 1
            if self.depth > 1:
                self.body.append('{\n')
        elif text == '}':
            self.depth -= 1
            if self.depth > 0:
                self.body.append('}\n')
        elif text.endswith(':'):
            self.body.append(f'{name_in_c(text[:-1])}: ;\n')
        elif text.startswith('.reg'):
            self.declare_registers(text)
        elif text.startswith(('.param', '.local')):
            self.declare_buffer(text)
        elif text.startswith('.shared'):
            self.module.place(text)
        elif text.startswith('.pragma'):
            pass
        elif text.startswith('.'):
            raise Unknown(text)
        else:
            self.instruction(text)

    def declare_registers(self, text):
        kind, names = re.fullmatch(r'\.reg\s+\.(\w+)\s+(.*)', text,
                                   re.S).groups()
        where = self.declared if self.depth == 1 else self.body
        ctype = rules.c_type(kind)
        kind = kind if kind in ('pred', 'f32', 'f64') else \
            f'b{8 * rules.size(kind)}'

        for each in split(names):
            many = re.fullmatch(r'(%\w+)<(\d+)>', each)
            given = ([f'{many.group(1)}{i}'
                      for i in range(1, int(many.group(2)))]
                     if many else [each])

            for name in given:
                self.registers[name] = kind

            if given:
                where.append(f"{ctype} {', '.join(map(name_in_c, given))};\n")

    def declare_buffer(self, text):
        match = re.fullmatch(r'\.(param|local)(?:\s+\.align\s+(\d+))?\s+'
                             r'\.(\w+)\s+(\w+)(?:\[(\d+)\])?', text)

        if not match:
            raise Unknown(text)

        space, _, kind, name, count = match.groups()
        self.buffers[name] = rules.size(kind) * int(count or 1)
        where = self.body if space == 'param' else self.declared
        where.append(f'uint8_t {name}[{self.buffers[name]}] '
                     '__attribute__((aligned(16)));\n')

    def instruction(self, text):
        guard, text = re.fullmatch(r'(@!?%\w+\s+)?(.*)', text, re.S).groups()
        opcode, rest = re.fullmatch(r'(\S+)\s*(.*)', text, re.S).groups()
        operands = split(rest)
        found = rules.find(opcode)

        if found and not re.search(r'[{|]', rest):
            code = self.computed(found, operands)
        else:
            method = getattr(self, 'do_' + opcode.partition('.')[0], None)

            if method is None:
                raise Unknown(f'instruction {opcode}')

            code = method(opcode, operands)

        if guard:
            code = f'if ({self.value(guard[1:].strip(), "pred")}) {code}'

        self.body.append(code + '\n')

    def computed(self, found, operands):
        types, value = found

        if len(operands) != len(types):
            raise Unknown(f'{len(operands)} operands')

        given = {letter: self.value(x, kind) for letter, x, kind
                 in zip('abcd', operands[1:], types[1:])}

        return self.assign(operands[0], types[0], value.format(**given))

    # operands

    def value(self, text, kind):
        """The C expression of an operand, of the C type of `kind`."""

        ctype = rules.c_type(kind)

        if text.startswith('!'):
            return f'!{self.value(text[1:], kind)}'

        if text in SPECIAL:
            return f'({ctype}) {SPECIAL[text]}'

        if text in self.registers:
            return self.register(text, kind)

        match = re.fullmatch(r'0[fF]([0-9A-Fa-f]{8})', text)
        if match:
            number = f'float_of(0x{match.group(1)}u)'
            return number if kind == 'f32' else f'bits_of({number})'

        match = re.fullmatch(r'0[dD]([0-9A-Fa-f]{16})', text)
        if match:
            number = f'double_of(0x{match.group(1)}ull)'
            return number if kind == 'f64' else f'bits_of_64({number})'

        if re.fullmatch(r'-?(0[xX][0-9A-Fa-f]+|\d+)U?', text):
            number = f"{text.rstrip('U')}{'' if text[0] == '-' else 'u'}ll"
            return f'({ctype}) {number}'

        if text in self.module.shared:
            return f'({ctype}) {self.shared_address(text)}'

        if text in self.buffers or text in self.module.variables:
            return f'({ctype}) {text}'

        if self.is_kernel and text in self.params.at:
            return f'({ctype}) (params + {self.params.at[text]})'

        raise Unknown(f'operand {text}')

    def register(self, text, kind):
        """A register's value as `kind`."""

        has, name = self.registers[text], name_in_c(text)

        if has == kind or has == 'b' + kind[1:] and kind[0] == 'u':
            return name

        if has == 'pred' or kind == 'pred':
            raise Unknown(f'{text} as {kind}')

        if kind == 'f32':
            return f'float_of({name})'

        if kind == 'f64':
            return f'double_of({name})'

        if has == 'f32':
            name = f'bits_of({name})'
        elif has == 'f64':
            name = f'bits_of_64({name})'

        return f'({rules.c_type(kind)}) {name}'

    def shared_address(self, name):
        start = self.module.shared[name]

        return WINDOW + start if start is not None else 'ptx_dynamic()'

    def assign(self, text, kind, value):
        if text == '_':
            return ';'

        name, has = name_in_c(text), self.registers.get(text)

        if has is None:
            raise Unknown(f'result {text}')

        if (has == 'pred') != (kind == 'pred'):
            raise Unknown(f'{text} as {kind}')

        value = f'({rules.c_type(kind)}) ({value})'

        if has in ('f32', 'f64') and kind[0] != 'f':
            value = f"{'float' if has == 'f32' else 'double'}_of({value})"
        elif has not in ('f32', 'f64') and kind in ('f32', 'f64'):
            value = f"bits_of{'' if kind == 'f32' else '_64'}({value})"

        return f'{name} = {value};'

    def address(self, text, kind):
        """The C expression of [register + offset] or [name + offset]."""

        match = re.fullmatch(r'\[([%$\w]+)(?:\+(-?\w+))?\]', text)

        if not match:
            raise Unknown(f'address {text}')

        base, offset = match.groups()

        return self.value(base, kind) + (f' + ({offset})' if offset else '')

    def parameter(self, text):
        """The C expression of a place in a parameter."""

        name, offset = re.fullmatch(r'\[([%\w]+)(?:\+(-?\d+))?\]',
                                    text).groups()
        offset = int(offset or 0)

        if name in self.registers:
            return f'{self.value(name, "u64")} + ({offset})'

        if self.is_kernel and name in self.params.at:
            return f'params + {self.params.at[name] + offset}'

        if name in self.result.at:
            return f'result + {self.result.at[name] + offset}'

        if name in self.params.at or name in self.buffers:
            return f'{name} + {offset}'

        raise Unknown(f'parameter {name}')


def write(path, text):
    with open(path, 'w', encoding='utf-8') as f:
        f.write(text)


def index(path, names):
    some = names[0] == '--some'
    names = [name_in_c(n) for n in names[some:]]

    write(path, '#include "t/gpu/ptx/types.h"\n\n'
          + ''.join(f'extern const ptx_module_t  ptx_module_{n};\n'
                    for n in names)
          + '\nconst ptx_module_t *const  ptx_modules[] = {\n'
          + ''.join(f'    &ptx_module_{n},\n' for n in names)
          + f'    NULL\n}};\n\nconst int  ptx_some = {int(some)};\n')


def main():
    if sys.argv[1:2] == ['--index']:
        index(sys.argv[2], sys.argv[3:])
        return

    source, target = sys.argv[1:]
    module = Module(os.path.splitext(os.path.basename(source))[0])

    with open(source, encoding='utf-8') as f:
        text = f.read()

    try:
        module.read(text)
    except Unknown as e:
        sys.exit(f'{source}: not translated: {e}')

    write(target, module.written())


if __name__ == '__main__':
    main()
