#!/usr/bin/env python3
"""Prints the time of each kernel, by PyTorch's profiler (CUPTI).

usage: kernels.py BENCH.so MODEL DEVICE LIBDIR STREAMS,... PROMPT,...

BENCH.so is bench.c, whose main() runs here once for each number of streams and
each prompt; the profiler sees all that the process launches, also from graphs.
For each kernel and size of its grid: share of the time of all kernels, number
of launches, median microseconds, registers, blocks per SM; largest share first.
"""

import ctypes
import json
import os
import re
import statistics
import sys
import tempfile

import torch
from torch.profiler import ProfilerActivity, profile


LOADING = ("llm_k_to_16", "llm_k_noise", "llm_k_differ", "llm_k_pack")


def short(name):
    name = re.sub(r"\((int|bool|unsigned int)\)", "", name)
    name = name.split("(", 1)[0] if not name.startswith("(") else name
    return name.replace("void ", "")[:100]


def launches(trace):
    for e in trace["traceEvents"]:
        if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset"):
            a = e.get("args", {})
            yield (short(e["name"]), str(a.get("grid", "")),
                   a.get("registers per thread", 0),
                   a.get("blocks per SM", 0), e["ts"], e["dur"])


def table(what, events):
    groups, gaps, last = {}, [], None
    for name, grid, regs, per_sm, ts, dur in sorted(events,
                                                    key=lambda e: e[4]):
        groups.setdefault((name, grid, regs, per_sm), []).append(dur)
        if last is not None:
            gaps.append(ts - last)
        last = ts + dur
    total = sum(map(sum, groups.values()))
    if not total:
        print(f"{what}: no kernel was seen")
        return
    print(f"{what}: {total / 1e3:.1f} ms in {sum(map(len, groups.values()))} "
          f"launches, {statistics.median(gaps):.2f} us between two")
    for (name, grid, regs, per_sm), times in sorted(
            groups.items(), key=lambda g: -sum(g[1]))[:24]:
        print(f"  {100 * sum(times) / total:5.1f} % {len(times):5} x "
              f"{statistics.median(times):8.2f} us  {regs:3} regs "
              f"{per_sm:7.2f} an SM  {grid} {name}")
    sys.stdout.flush()


def main():
    bench = ctypes.CDLL(os.path.abspath(sys.argv[1]))
    fixed = sys.argv[2:5]
    cases = [(f"{n} streams", n, "") for n in sys.argv[5].split(",")]
    cases += [(f"prompt of {n}", "", n) for n in sys.argv[6].split(",")]
    torch.cuda.init()
    for what, streams, prompt in cases:
        args = ["bench", *fixed, streams, prompt]
        argv = (ctypes.c_char_p * len(args))(*(a.encode() for a in args))
        with profile(activities=[ProfilerActivity.CUDA]) as prof:
            bench.main(len(args), argv)
        with tempfile.NamedTemporaryFile(suffix=".json") as f:
            prof.export_chrome_trace(f.name)
            events = list(launches(json.load(open(f.name))))
        # only after the load, which tries cublasLt's candidates
        loaded = max((e[4] for e in events if e[0] in LOADING), default=0)
        table(what, [e for e in events if e[4] > loaded])


if __name__ == "__main__":
    main()
