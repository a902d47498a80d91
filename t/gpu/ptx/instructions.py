"""Instructions of PTX that are more than an expression (rules.py): loads and
stores, copies, warps and tensor cores, branches and calls.  Each method makes
the C of the opcodes that begin with its name.
"""

import re

import rules


class Unknown(Exception):
    """Something of PTX that has no translation."""


def split(text):
    """Operands at commas outside of brackets."""

    parts, depth = [''], 0

    for c in text:
        depth += (c in '{[(') - (c in '}])')

        if c == ',' and depth == 0:
            parts.append('')
        else:
            parts[-1] += c

    return [p.strip() for p in parts if p.strip()]


def name_in_c(text):
    return re.sub(r'\W', '_', text)


class Instructions:
    """The methods of a function that is translated (translate.py), which has
    value(), assign(), address() and parameter() for operands, and the line."""

    # memory

    def memory(self, opcode, place, write):
        """Space, pointer and types of a load or store."""

        match = re.fullmatch(
            r'(?:ld|st)(?:\.(?P<space>param|global|shared|local|const))?'
            r'(?:\.nc)?(?:\.v(?P<n>[24]))?\.(?P<t>[usbf](?:8|16|32|64))',
            opcode)

        if not match:
            raise Unknown(f'instruction {opcode}')

        space, n, kind = match.group('space', 'n', 't')
        n = int(n or 1)

        if space == 'param':
            return self.parameter(place), n, kind

        size = n * rules.size(kind)
        call = f"{space or 'generic'}_{'write' if write else 'read'}_{size}"
        where = self.address(place, 'u32' if space == 'shared' else 'u64')

        return f'ptx_{call}({where}, {self.line})', n, kind

    def do_ld(self, opcode, operands):
        target, place = operands
        pointer, n, kind = self.memory(opcode, place, False)
        ctype = rules.c_type(kind)
        names = split(target[1:-1]) if n > 1 else [target]

        return (f'{{ const {ctype} *p = (const {ctype} *) ({pointer}); '
                + ' '.join(self.assign(x, kind, f'p[{i}]')
                           for i, x in enumerate(names)) + ' }')

    def do_st(self, opcode, operands):
        place, source = operands
        pointer, n, kind = self.memory(opcode, place, True)
        ctype = rules.c_type(kind)
        names = split(source[1:-1]) if n > 1 else [source]

        return (f'{{ {ctype} *p = ({ctype} *) ({pointer}); '
                + ' '.join(f'p[{i}] = {self.value(x, kind)};'
                           for i, x in enumerate(names)) + ' }')

    def do_atom(self, opcode, operands):
        match = re.fullmatch(
            r'(?:atom|red)(?:\.relaxed)?(?:\.(?:gpu|cta))?'
            r'\.(?P<space>global|shared)\.(?P<op>add|min|max|exch|cas|and|or)'
            r'\.(?P<t>[usbf](?:32|64))', opcode)

        if not match:
            raise Unknown(f'instruction {opcode}')

        space, op, kind = match.group('space', 'op', 't')
        target, place = operands[:2]
        where = self.address(place, 'u32' if space == 'shared' else 'u64')
        given = ', '.join(self.value(x, kind) for x in operands[2:])
        call = (f'atomic_{op}_{kind}(ptx_{space}_atomic_{rules.size(kind)}('
                f'{where}, {self.line}), {given})')

        return f'(void) {call};' if target == '_' else \
            self.assign(target, kind, call)

    def do_red(self, opcode, operands):
        return self.do_atom(opcode, ['_'] + operands)

    def do_cp(self, opcode, operands):
        if opcode == 'cp.async.commit_group':
            return 'ptx_copy_commit();'

        if opcode == 'cp.async.wait_group':
            return f'ptx_copy_wait({int(operands[0])});'

        if opcode == 'cp.async.wait_all':
            return 'ptx_copy_commit(); ptx_copy_wait(0);'

        match = re.fullmatch(r'cp\.async\.c[ag]\.shared\.global'
                             r'(?:\.L2::\d+B)?', opcode)

        if not match:
            raise Unknown(f'instruction {opcode}')

        size = operands[2]
        read = self.value(operands[3], 'u32') if len(operands) > 3 else size

        return (f"ptx_copy({self.address(operands[0], 'u32')}, "
                f"{self.address(operands[1], 'u64')}, {size}, {read}, "
                f'{self.line});')

    # moves of vectors

    def do_mov(self, opcode, operands):
        match = re.fullmatch(r'mov\.b(32|64)', opcode)

        if not match:
            raise Unknown(f'instruction {opcode} of a vector')

        target, source = operands
        bits = int(match.group(1))

        if target.startswith('{'):
            names = split(target[1:-1])
            part = bits // len(names)

            return ('{ ' + f'uint64_t v = {self.value(source, f"u{bits}")}; '
                    + ' '.join(self.assign(x, f'u{part}', f'v >> {i * part}')
                               for i, x in enumerate(names)) + ' }')

        names = split(source[1:-1])
        part = bits // len(names)

        return self.assign(target, f'u{bits}', ' | '.join(
            f"(uint64_t) {self.value(x, f'u{part}')} << {i * part}"
            for i, x in enumerate(names)))

    # warps and tensor cores

    def do_ldmatrix(self, opcode, operands):
        match = re.fullmatch(r'ldmatrix\.sync\.aligned\.m8n8\.x([124])'
                             r'(\.trans)?\.shared\.b16', opcode)

        if not match:
            raise Unknown(f'instruction {opcode}')

        n = int(match.group(1))
        names = split(operands[0].strip('{}'))

        return (f'{{ uint32_t r[4]; ptx_ldmatrix(r, '
                f"{self.address(operands[1], 'u32')}, {n}, "
                f'{int(bool(match.group(2)))}, {self.line}); '
                + ' '.join(self.assign(x, 'b32', f'r[{i}]')
                           for i, x in enumerate(names)) + ' }')

    def do_mma(self, opcode, operands):
        match = re.fullmatch(r'mma\.sync\.aligned\.(m16n8k16|m16n8k32)\.row'
                             r'\.col\.f32\.(b?f16|e4m3)\.\2\.f32', opcode)

        if not match or (match.group(1) == 'm16n8k32') \
                != (match.group(2) == 'e4m3'):
            raise Unknown(f'instruction {opcode}')

        d, a, b, c = (split(x[1:-1]) for x in operands)
        given = ', '.join(self.value(x, 'b32') for x in a + b)
        sums = ', '.join(self.value(x, 'f32') for x in c)
        call = ('ptx_mma_e4m3(d, ab, ab + 4)' if match.group(2) == 'e4m3' else
                f"ptx_mma(d, ab, {int(match.group(2) == 'bf16')})")

        return (f'{{ uint32_t ab[6] = {{ {given} }}; float d[4] = {{ {sums} }};'
                f' {call}; '
                + ' '.join(self.assign(x, 'f32', f'd[{i}]')
                           for i, x in enumerate(d)) + ' }')

    # done at once, so there is nothing to wait for

    def do_wgmma(self, opcode, operands):
        if re.fullmatch(r'wgmma\.(fence|commit_group|wait_group)'
                        r'\.sync\.aligned', opcode):
            return ';'

        match = re.fullmatch(r'wgmma\.mma_async\.sync\.aligned\.m64n(\d+)'
                             r'(k16\.f32\.(?:f16\.f16|(bf16)\.bf16)'
                             r'|k32\.f32\.e4m3\.e4m3)', opcode)

        if not match or operands[3] not in '01' \
                or operands[4:6] != ['1', '1']:
            raise Unknown(f'instruction {opcode}')

        # which operands are transposed: a left one in shared memory, and the
        # right one unless of e4m3

        n, e4m3 = int(match.group(1)), match.group(2).startswith('k32')
        turned = operands[6:]
        shared = not operands[1].startswith('{')

        if len(turned) != (0 if e4m3 else 1 + shared) \
                or (shared and turned.pop(0) != '0'):
            raise Unknown(f'instruction {opcode}')

        call = ('ptx_wgmma_e4m3(d, {}, a, {}, {}, {})' if e4m3 else
                'ptx_wgmma(d, {}, a, {}, {}, {}, {}, {})')
        kind = [] if e4m3 else [turned[0], int(bool(match.group(3)))]
        sums = split(operands[0][1:-1])
        given = ', '.join(self.value(x, 'f32') for x in sums)

        return (f'{{ uint32_t a[4]; float d[{n // 2}] = {{ {given} }}; '
                + self.wgmma_left(operands[1]) + ' '
                + call.format(n, self.value(operands[2], 'u64'), operands[3],
                              *kind, self.line) + '; '
                + ' '.join(self.assign(x, 'f32', f'd[{i}]')
                           for i, x in enumerate(sums)) + ' }')

    # a: the left operand, in registers or at a descriptor

    def wgmma_left(self, operand):
        if not operand.startswith('{'):
            return (f"ptx_wgmma_left(a, {self.value(operand, 'u64')}, "
                    f'{self.line});')

        return ' '.join(f"a[{i}] = {self.value(x, 'b32')};"
                        for i, x in enumerate(split(operand[1:-1])))

    def do_fence(self, opcode, operands):
        if opcode != 'fence.proxy.async.shared::cta' or operands:
            raise Unknown(f'instruction {opcode}')

        return ';'

    def do_trap(self, opcode, operands):
        return f'ptx_trap({self.line});'

    def do_shfl(self, opcode, operands):
        match = re.fullmatch(r'shfl\.sync\.(up|down|bfly|idx)\.b32', opcode)

        if not match:
            raise Unknown(f'instruction {opcode}')

        target, _, valid = operands[0].partition('|')
        given = ', '.join(self.value(x, 'b32') for x in operands[1:])

        return (f'{{ int valid; uint32_t v = '
                f'ptx_shfl_{match.group(1)}({given}, &valid); '
                + self.assign(target, 'b32', 'v')
                + (self.assign(valid, 'pred', 'valid') if valid else '')
                + ' (void) valid; }')

    def do_vote(self, opcode, operands):
        target, given, mask = operands
        ballot = (f"ptx_ballot({self.value(mask, 'b32')}, "
                  f"{self.value(given, 'pred')})")

        if opcode == 'vote.sync.ballot.b32':
            return self.assign(target, 'b32', ballot)

        if opcode == 'vote.sync.any.pred':
            return self.assign(target, 'pred', f'{ballot} != 0')

        if opcode == 'vote.sync.all.pred':
            return self.assign(target, 'pred', ballot + ' == '
                               + self.value(mask, 'b32'))

        raise Unknown(f'instruction {opcode}')

    def do_bar(self, opcode, operands):
        if opcode == 'bar.sync' and operands == ['0']:
            return 'ptx_barrier();'

        if opcode == 'bar.warp.sync':
            return f"ptx_warp_barrier({self.value(operands[0], 'b32')});"

        raise Unknown(f"instruction {opcode} {', '.join(operands)}")

    def do_griddepcontrol(self, opcode, operands):
        if opcode == 'griddepcontrol.wait':
            return 'ptx_early_wait();'

        if opcode == 'griddepcontrol.launch_dependents':
            return ';'

        raise Unknown(f'instruction {opcode}')

    # branches and calls

    def do_bra(self, opcode, operands):
        if opcode not in ('bra', 'bra.uni'):
            raise Unknown(f'instruction {opcode}')

        return f'goto {name_in_c(operands[0])};'

    def do_ret(self, opcode, operands):
        if opcode != 'ret' or operands:
            raise Unknown(f'instruction {opcode}')

        return 'return;'

    def do_call(self, opcode, operands):
        if opcode not in ('call', 'call.uni'):
            raise Unknown(f'instruction {opcode}')

        results = (split(operands.pop(0)[1:-1])
                   if operands[0].startswith('(') else [])
        given = split(operands[1][1:-1]) if len(operands) > 1 else []

        if not re.fullmatch(r'\w+', operands[0]) or len(operands) > 2:
            raise Unknown(f'call of {operands[0]}')

        return f"{operands[0]}({', '.join(results + given)});"
