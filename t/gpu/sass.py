#!/usr/bin/env python3
"""Judges the inner loops of the CUDA kernels by their machine code for sm_90a.

usage: sass.py [--table FILE] [--write] [--strict] [FILE ...]

A FILE is an object with machine code (by default objs/cuda/kernels/cuda/*.o,
compiled with 90a in CUDA_ARCH), or text that `cuobjdump -sass -res-usage`
printed (NAME.sass).  cuobjdump is $CUOBJDUMP, or that of .deps/sass
(t/setup.sh), or in PATH.

A line of the table is a loop that has HMMA or HGMMA itself, not only in a loop
within it; of a kernel without these, the loop that loads the most bytes from
global memory, if a thread loads 16 or more.

  regs        registers of a thread
  blocks      blocks that an SM holds; "-" if the launch is not in LAUNCHES
  instr       instructions of an iteration
  cycles      their stall counts: what a warp takes that has a scheduler for
              itself and never waits for a load or another slow instruction
  waits       instructions that may have to wait for one
  mma         HMMA and HGMMA (and QMMA, QGMMA: of fp8)
  bytes       that a thread loads from global memory (LDG and LDGSTS; how much
              the tensor memory accelerator copies is not in the code)
  predicated  mma under a predicate: a choice made within the loop, both sides
              of which are issued
  local       loads and stores of local memory: spilled registers, or an array
              whose index is no constant

instr to bytes are of one path: of the paths through the loop with the most mma,
and of these with the most bytes, the one with the fewest cycles.  predicated
and local are of all paths, and local also of the loops within.  A function that
is called, not inlined, counts as its call.

Exit status 1, after the table, with a line for each reason:

  - a loop has predicated or local;
  - a loop has more cycles than in the committed table (t/gpu/sass.txt), if the
    table is by the same compiler;
  - a loop is not in the table, or is gone from the code.

Where predicated or local cannot be avoided, or cost less than what would avoid
them, the table says why: "; accepted: WHY" after the loop's name.  Then they
are no reason, unless they are more than in the table; with --strict they are.
--write writes the committed table instead; it keeps what is accepted of loops
that still need it.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
from collections import namedtuple
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TABLE = ROOT / "t" / "gpu" / "sass.txt"

# An SM of capability 9.0 (CUDA C++ Programming Guide, technical specifications
# by compute capability; Hopper tuning guide, occupancy).  A quarter of the
# registers is each scheduler's; a warp takes them in units of 256.
SM_REGISTERS = 65536
SM_SHARED = 228 << 10
SM_THREADS = 2048
SM_BLOCKS = 32
SCHEDULERS = 4
REGISTER_UNIT = 256

COLUMNS = "regs blocks instr cycles waits mma bytes predicated local".split()
JUDGED = "cycles predicated local".split()
ACCEPTED = "; accepted: "               # after a loop's name in the table

Ins = namedtuple("Ins", "at pred op text stall waits")
Loop = namedtuple("Loop", ["name"] + COLUMNS)


# ---- launches: threads, and dynamic shared memory ----

def attention(dk, dv, fp8, *_):
    """llm_att_stage_t in attention.h"""
    n = 16 if dk > 256 else 32 if dk > 128 else 64
    wide = 2 * n * (dk + 8) + 2 * n * (dv + 8)
    stage = n * (dk + 1) + n * (dv + 1) if fp8 else wide
    return 128, (2 * stage + (wide if fp8 else 0) + 64 * 8
                 + 16 * (n + 8) * 2 + 2 * 4 * 16 * 4)


# bytes of a record (linear.h), by class
RECORD = {1: 2048, 2: 1536, 3: 1280, 4: 1280, 5: 1536, 6: 1792, 8: 2176}

def few(wm, wn, _nt, xr, cols, stages, _bf16):
    """llm_few_shape_t in linear_few.cu"""
    return wm * wn * 32, ((wm * 16 + xr) * stages + (xr == 1)) * cols * 2


LAUNCHES = {
    "llm_k_linear_few": few,
    "llm_k_linear_glu": few,
    # llm_fp8_shape_t in linear_fp8.cu
    "llm_k_linear_fp8": lambda wm, nt, stages, _: (
        wm * 128, (wm * 4 * 2048 + nt * 8 * 128) * stages + 1024),
    # llm_lwg_shape_t in linear_wgmma.cu
    "llm_k_linear_wgmma": lambda cls, wg, n, stages, _: (
        128 * wg, (-(-wg * (4 * RECORD[cls] if cls else 8192) // 1024) * 1024
                   + n * 8 * (128 if cls else 64) * 2) * stages + 1024),
    "llm_k_linear_16": lambda wm, wn, mt, nt, ks, stages, cls, _: (
        wm * wn * 32,
        (wm * mt * (RECORD[cls] if cls else 16 * 2 * ks)
         + wn * nt * 8 * 2 * ks) * stages),
    "llm_k_linear_q": lambda _, nt, bf16: (256, 8 * 16 * nt * 8 * 4),
    # a row of x of 4,096 columns, and sums of four tiles
    "llm_k_linear_one": lambda _, bf16: (256, 4096 * 2 + 4 * 8 * 16 * 4),
    "llm_k_experts": lambda _, nt, bf16: (256, 8 * 16 * nt * 8 * 4),
    "llm_k_heads": lambda _, mt, nt, bf16: (128, nt * 8 * (128 + 8) * 2),
    "llm_k_attention": attention,
    # LLM_AWG_SHARED in attention_wgmma.cu
    "llm_k_attention_wgmma": lambda: (256, 4 * 2 * 16384 + 1024),
}


def launch(name):
    """(threads, dynamic shared memory) of a kernel, or None."""
    m = re.match(r"(\w+)(?:<([-\d, ]+)>)?$", name)
    if not m or m.group(1) not in LAUNCHES:
        return None
    return LAUNCHES[m.group(1)](*map(int, re.findall(r"-?\d+",
                                                     m.group(2) or "")))


def blocks_an_sm(name, regs, shared):
    """shared: static shared memory, with what the system takes of it."""
    if not launch(name):
        return "-"
    threads, dynamic = launch(name)
    warps = (threads + 31) // 32
    unit = -(-regs * 32 // REGISTER_UNIT) * REGISTER_UNIT
    resident = SM_REGISTERS // SCHEDULERS // unit * SCHEDULERS
    return min(resident // warps, SM_SHARED // (shared + dynamic),
               SM_THREADS // threads, SM_BLOCKS)


# ---- reading cuobjdump's text ----

FUNCTION = re.compile(r"\s*Function (?:: )?(\S+?):?$")
USAGE = re.compile(r"\s+REG:(\d+) .*SHARED:(\d+)")
FIRST = re.compile(r"\s+/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;\s+/\* 0x")
SECOND = re.compile(r"\s+/\* 0x([0-9a-f]{16}) \*/")
INSTRUCTION = re.compile(r"(?:@(!?U?P\w+)\s+)?(\S+)\s*(.*)")


def instruction(at, text, high):
    """From bit 105 of an instruction's 128 on: stall count (4 bits), yield (1),
    the barriers that its result and its reads set (3 each), those that it waits
    for (6): Jia et al., arXiv:1804.06826, section 2.1, of Volta and later."""
    pred, op, operands = INSTRUCTION.match(text).groups()
    control = high >> 41
    return Ins(at, pred, op, operands, control & 15, control >> 11 & 63)


def read(lines):
    """The functions in the output of cuobjdump: {name: [Ins]}, and what
    -res-usage says of them: {name: (registers, static shared memory)}."""
    functions, usage, name, first = {}, {}, None, None
    for line in lines:
        m = FUNCTION.match(line)
        if m:
            name = m.group(1)
            continue
        m = USAGE.match(line)
        if m:
            usage[name] = (int(m.group(1)), int(m.group(2)))
            continue
        m = FIRST.match(line)
        if m:
            first = int(m.group(1), 16), m.group(2)
            continue
        m = SECOND.match(line)
        if m and first:
            functions.setdefault(name, []).append(
                instruction(*first, int(m.group(1), 16)))
            first = None
    return functions, usage


# ---- control flow ----

TARGET = re.compile(r"(0x[0-9a-f]+)$")


def jump(i):
    """The address that an instruction may jump to, or None."""
    if i.op.split(".")[0] == "BRA":
        m = TARGET.search(i.text)
        return int(m.group(1), 16) if m else None
    return None


def ends(i):
    """Does control never pass on to the next instruction?"""
    op = i.op.split(".")[0]
    if i.pred and i.pred != "PT":
        return False
    if op == "BRA":
        # other conditions are operands: BRA.U UP0, BRA.DIV UR4, BRA P1
        return re.match(r"0x[0-9a-f]+$", i.text) is not None
    return op in ("EXIT", "RET", "BRX", "JMP", "KILL")


def blocks_of(code):
    """Basic blocks: [(first, end)] as indices of code, and their successors."""
    index = {i.at: n for n, i in enumerate(code)}
    starts = {0}
    for n, i in enumerate(code):
        to = jump(i)
        if to in index:
            starts.add(index[to])
        if (to is not None or ends(i)) and n + 1 < len(code):
            starts.add(n + 1)
    starts = sorted(starts)
    blocks = list(zip(starts, starts[1:] + [len(code)]))
    number = {first: b for b, (first, _) in enumerate(blocks)}
    after = []
    for b, (first, end) in enumerate(blocks):
        last = code[end - 1]
        to = [] if ends(last) or b + 1 == len(blocks) else [b + 1]
        if jump(last) in index:
            to.append(number[index[jump(last)]])
        after.append(to)
    return blocks, after


def order_of(after, root=0):
    """The blocks that can be reached, each before its successors but for those
    that a loop jumps back to."""
    done, seen, stack = [], {root}, [(root, iter(after[root]))]
    while stack:
        block, rest = stack[-1]
        for to in rest:
            if to not in seen:
                seen.add(to)
                stack.append((to, iter(after[to])))
                break
        else:
            done.append(block)
            stack.pop()
    return done[::-1]


def dominators(order, before):
    """{block: the last block that all paths to it pass}."""
    rank = {b: n for n, b in enumerate(order)}
    idom = {order[0]: order[0]}
    changed = True
    while changed:
        changed = False
        for b in order[1:]:
            new = None
            for p in before[b]:
                if p not in idom:
                    continue
                new = p if new is None else new
                while p != new:
                    while rank[p] > rank[new]:
                        p = idom[p]
                    while rank[new] > rank[p]:
                        new = idom[new]
            if idom.get(b) != new:
                idom[b] = new
                changed = True
    return idom


def loops_of(after):
    """{header: blocks} of natural loops, and the order of all blocks."""
    order = order_of(after)
    before = {b: [] for b in order}
    for b in order:
        for to in after[b]:
            before[to].append(b)
    idom = dominators(order, before)
    loops = {}
    for b in order:
        for head in after[b]:
            d = b
            while d != head and idom[d] != d:
                d = idom[d]
            if d != head:
                continue
            body, todo = loops.setdefault(head, {head}), [b]
            while todo:
                x = todo.pop()
                if x not in body:
                    body.add(x)
                    todo += before[x]
    return loops, order


# ---- what an iteration does ----

MMA = re.compile(r"[HQ]G?MMA\b")
WIDTH = re.compile(r"\.(?:[US]?(8|16|32|64|128))(?=\.|$)")


def is_mma(i):
    return MMA.match(i.op) is not None


def is_local(i):
    return re.match(r"(LDL|STL)\b", i.op) is not None


def loaded(i):
    """Bytes that a thread loads from global memory."""
    if not re.match(r"(LDG|LDGSTS)\b", i.op):
        return 0
    m = [int(w) for w in WIDTH.findall(i.op)]
    return max(m) // 8 if m else 4


def cost(code, first, end):
    """(mma, bytes, -cycles, instructions, waits) of a block."""
    part = code[first:end]
    return (sum(map(is_mma, part)), sum(map(loaded, part)),
            -sum(i.stall for i in part), len(part),
            sum(i.waits != 0 for i in part))


def path(code, blocks, after, order, head, body, inner):
    """The costs of the path of an iteration (see the head of this file).  A
    loop within is passed once, from its header to its exits, without cost."""
    best = {head: (0, 0, 0, 0, 0)}
    ended = []
    for b in order:
        if b not in best or b not in body:
            continue
        if b in inner:
            total, within = best[b], inner[b]
        else:
            total = tuple(map(sum, zip(best[b], cost(code, *blocks[b]))))
            within = {b}
        for x in within:
            for to in after[x]:
                if to == head:
                    ended.append(total)
                elif to in body and to not in within:
                    if to not in best or best[to] < total:
                        best[to] = total
    return max(ended) if ended else None


def judged(code):
    """The loops of a function that are judged, in the order of their code: a
    list of (instr, cycles, waits, mma, bytes, predicated, local)."""
    blocks, after = blocks_of(code)
    loops, order = loops_of(after)
    found, others = [], []
    for head in sorted(loops):
        body = loops[head]
        within = {h: b for h, b in loops.items() if b < body}
        outer = {h: b for h, b in within.items()
                 if not any(b < other for other in within.values())}
        own = body.difference(*outer.values())
        best = path(code, blocks, after, order, head, body, outer)
        if best is None:
            continue
        mma, size, cycles, instr, waits = best
        every = [i for b in body for i in code[slice(*blocks[b])]]
        mine = [i for b in own for i in code[slice(*blocks[b])]]
        row = (instr, -cycles, waits, mma, size,
               sum(is_mma(i) and bool(i.pred) for i in mine),
               sum(map(is_local, every)))
        if any(map(is_mma, mine)):
            found.append(row)
        elif size >= 16:
            others.append(row)
    return found or sorted(others, key=lambda r: -r[4])[:1]


# ---- the table ----

def demangled(names):
    """Without return type and arguments."""
    names = list(names)
    if shutil.which("c++filt"):
        out = subprocess.run(["c++filt"], input="\n".join(names), text=True,
                             stdout=subprocess.PIPE, check=True).stdout
        names = out.split("\n")[:len(names)]
    return [re.sub(r"^void ", "", n).split("(")[0] for n in names]


def loops_in(text):
    """The Loops in cuobjdump's output."""
    functions, usage = read(text.split("\n"))
    found = []
    for mangled, name in zip(functions, demangled(functions)):
        regs, shared = usage.get(mangled, (0, 0))
        for n, row in enumerate(judged(functions[mangled])):
            found.append(Loop(f"{name} #{n + 1}", regs,
                              blocks_an_sm(name, regs, shared), *row))
    return found


def cuobjdump():
    ours = ROOT / ".deps/sass/nvidia/cu13/bin/cuobjdump"
    for path in os.environ.get("CUOBJDUMP"), ours, shutil.which("cuobjdump"):
        if path and os.access(path, os.X_OK):
            return Path(path)
    sys.exit("sass.py: no cuobjdump; pip install --target DIR -r "
             "t/gpu/sass-requirements.txt, then set "
             "CUOBJDUMP=DIR/nvidia/cu13/bin/cuobjdump")


def text_of(file):
    if file.suffix == ".sass":
        return file.read_text()
    tool = cuobjdump()
    # it runs nvdisasm, which is beside it
    path = f"{tool.parent}:{os.environ.get('PATH', '')}"
    return subprocess.run(
        [tool, "-arch", "sm_90a", "-sass", "-res-usage", file], text=True,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False,
        env=dict(os.environ, PATH=path)).stdout


def compiler():
    home = os.environ.get("CUDA_HOME")
    places = f"{home}/bin" if home else \
        f"{os.environ.get('PATH', '')}:/usr/local/cuda/bin"
    nvcc = shutil.which("nvcc", path=places)
    if not nvcc:
        return "unknown"
    out = subprocess.run([nvcc, "--version"], text=True,
                         stdout=subprocess.PIPE, check=True).stdout
    m = re.search(r"V(\d+\.\d+\.\d+)", out)
    return f"nvcc {m.group(1)}" if m else "unknown"


def owed(loop):
    return ", ".join(f"{getattr(loop, c)} {c}" for c in JUDGED[1:]
                     if getattr(loop, c))


def line_of(loop, accepted):
    values = " ".join(f"{v:>{len(c)}}" for v, c in zip(loop[1:], COLUMNS))
    why = accepted.get(loop.name) if owed(loop) else None
    return f"  {values}  {loop.name}" + (ACCEPTED + why if why else "")


HEAD = f"# {' '.join(COLUMNS)}  kernel and number of the loop"


def read_table(file):
    """(compiler, {name: Loop}, {name: why it is accepted}) of a table."""
    made, loops, accepted = "unknown", {}, {}
    for line in file.read_text().split("\n"):
        if line.startswith("# by "):
            made = line[5:]
        elif line and not line.startswith("#"):
            *values, name = line.split(None, len(COLUMNS))
            name, _, why = name.partition(ACCEPTED)
            values = [v if v == "-" else int(v) for v in values]
            loops[name] = Loop(name, *values)
            if why:
                accepted[name] = why
    return made, loops, accepted


def reasons(loops, table, accepted, same):
    """What is not accepted, or is worse than in the table, a line each."""
    for loop in loops:
        if loop.name not in table:
            yield f"{loop.name}: not in the table (sass.py --write)"
            continue
        for c in JUDGED if same else JUDGED[1:]:
            now, was = getattr(loop, c), getattr(table[loop.name], c)
            if now > was:
                yield f"{loop.name}: {now} {c}, {was} in the table"
        if owed(loop) and loop.name not in accepted:
            yield f"{loop.name}: {owed(loop)}, not accepted"
    names = {loop.name for loop in loops}
    for name in table:
        if name not in names:
            yield f"{name}: gone from the code (sass.py --write)"


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    p.add_argument("files", nargs="*", type=Path, metavar="FILE")
    p.add_argument("--table", type=Path, default=TABLE)
    p.add_argument("--write", action="store_true")
    p.add_argument("--strict", action="store_true")
    args = p.parse_args()
    files = args.files or sorted(
        (ROOT / "objs/cuda/kernels/cuda").glob("*.o"))

    with ThreadPoolExecutor(2) as pool:
        loops = [x for text in pool.map(text_of, files)
                 for x in loops_in(text)]
    loops.sort(key=lambda x: [int(w) if w.isdigit() else w
                              for w in re.split(r"(\d+)", x.name)])
    if not loops:
        sys.exit("sass.py: no machine code of sm_90a in these files")

    made, was, table, accepted = compiler(), "unknown", {}, {}
    if args.table.exists():
        was, table, accepted = read_table(args.table)
    lines = [f"# by {made}", HEAD, *(line_of(x, accepted) for x in loops)]
    if args.write:
        args.table.write_text("\n".join(
            ["# Written by t/gpu/sass.py --write", *lines]) + "\n")
        return

    print(*lines, sep="\n")
    same = made == was
    if not same:
        print(f"# cycles are not compared: the table is by {was}")
    bad = list(reasons(loops, table, {} if args.strict else accepted, same))
    for reason in bad:
        print(f"sass.py: {reason}", file=sys.stderr)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
