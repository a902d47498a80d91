"""Muon: momentum with orthogonalised updates, for weight matrices.

By K. Jordan, "Muon: an optimizer for hidden layers" (2024), with the step
scaled to the root mean square of AdamW's as in "Muon is scalable for LLM
training" (2025).  The Newton-Schulz iteration takes all matrices of one shape
in one batch.
"""

import torch


def orthogonal(g, steps=5):
    """Approximately the nearest semi-orthogonal matrices to g [n, rows,
    cols]."""
    x = g.bfloat16()
    tall = x.shape[1] > x.shape[2]
    if tall:
        x = x.mT
    x = x / (x.float().norm(dim=(1, 2), keepdim=True) + 1e-7).bfloat16()
    for _ in range(steps):
        a = x @ x.mT
        x = 3.4445 * x + (-4.7750 * a + 2.0315 * (a @ a)) @ x
    return (x.mT if tall else x).float()


class Muon(torch.optim.Optimizer):
    def __init__(self, matrices, lr, momentum=0.95, weight_decay=0.02):
        by_shape = {}
        for p in matrices:
            by_shape.setdefault(p.shape, []).append(p)
        super().__init__([{"params": ps} for ps in by_shape.values()],
                         {"lr": lr, "momentum": momentum,
                          "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            params = group["params"]
            grads = torch.stack([p.grad for p in params])
            state = self.state[params[0]]
            if "buffer" not in state:
                state["buffer"] = torch.zeros_like(grads)
            buffer = state["buffer"]
            buffer.lerp_(grads, 1 - group["momentum"])
            update = orthogonal(grads.lerp(buffer, group["momentum"]))
            scale = 0.2 * max(update.shape[1:]) ** 0.5 * group["lr"]
            for p, u in zip(params, update):
                p.mul_(1 - group["lr"] * group["weight_decay"])
                p.add_(u, alpha=-scale)
