"""A small GPT learns the text of a book character by character: `python gpt.py [--steps N] [--device NAME]`."""

import argparse
import math
import random

from example_data import load_text

import mortice as torch
import mortice.nn as nn
from mortice.nn import functional as F

CHARACTERS = "\n" + "".join(map(chr, range(32, 127)))
NUMBER = {c: i for i, c in enumerate(CHARACTERS)}


class CausalSelfAttention(nn.Module):
    def __init__(self, width, heads, block_size):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.project = nn.Linear(width, width)
        mask = torch.tril(torch.ones(block_size, block_size)).view(1, 1, block_size, block_size)
        self.register_buffer("mask", mask)

    def forward(self, x):
        B, T, C = x.size()
        q, k, v = self.qkv(x).split(C, dim=2)
        q = q.view(B, T, self.heads, C // self.heads).transpose(1, 2)
        k = k.view(B, T, self.heads, C // self.heads).transpose(1, 2)
        v = v.view(B, T, self.heads, C // self.heads).transpose(1, 2)
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        att = att.masked_fill(self.mask[:, :, :T, :T] == 0, float("-inf"))
        att = F.softmax(att, dim=-1)
        y = (att @ v).transpose(1, 2).contiguous().view(B, T, C)
        return self.project(y)


class Block(nn.Module):
    def __init__(self, width, heads, block_size):
        super().__init__()
        self.ln_1 = nn.LayerNorm(width)
        self.attn = CausalSelfAttention(width, heads, block_size)
        self.ln_2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    def __init__(self, width, layers, heads, block_size):
        super().__init__()
        self.block_size = block_size
        self.transformer = nn.ModuleDict(
            dict(
                wte=nn.Embedding(len(CHARACTERS), width),
                wpe=nn.Embedding(block_size, width),
                h=nn.ModuleList([Block(width, heads, block_size) for _ in range(layers)]),
                ln_f=nn.LayerNorm(width),
            )
        )
        self.lm_head = nn.Linear(width, len(CHARACTERS), bias=False)
        self.transformer.wte.weight = self.lm_head.weight  # one table reads and writes
        self.apply(self._init_weights)
        for name, p in self.named_parameters():
            if name.endswith("project.weight"):
                torch.nn.init.normal_(p, mean=0.0, std=0.02 / math.sqrt(2 * layers))

    def _init_weights(self, module):
        if isinstance(module, (nn.Linear, nn.Embedding)):
            torch.nn.init.normal_(module.weight, mean=0.0, std=0.02)
            if isinstance(module, nn.Linear) and module.bias is not None:
                torch.nn.init.zeros_(module.bias)

    def forward(self, idx, targets=None):
        pos = torch.arange(0, idx.size(1), dtype=torch.long, device=idx.device).unsqueeze(0)
        x = self.transformer.wte(idx) + self.transformer.wpe(pos)
        for block in self.transformer.h:
            x = block(x)
        logits = self.lm_head(self.transformer.ln_f(x))
        loss = None
        if targets is not None:
            loss = F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))
        return logits, loss

    @torch.no_grad()
    def generate(self, idx, max_new_tokens, top_k=5):
        for _ in range(max_new_tokens):
            logits, _ = self(idx[:, -self.block_size :])
            logits = logits[:, -1, :]
            v, _ = torch.topk(logits, top_k)
            logits[logits < v[:, [-1]]] = -float("Inf")
            idx = torch.cat((idx, torch.multinomial(F.softmax(logits, dim=-1), num_samples=1)), dim=1)
        return idx


def build(width=64, layers=3, heads=4, block_size=64):
    return GPT(width, layers, heads, block_size)


def train(model, steps, batch_size=16, lr=3e-3, warmup=10):
    device = next(model.parameters()).device
    data = torch.tensor([NUMBER[c] for c in load_text()], dtype=torch.long)
    choice = random.Random(0)
    decay = [p for p in model.parameters() if p.dim() >= 2]
    no_decay = [p for p in model.parameters() if p.dim() < 2]
    groups = [{"params": decay, "weight_decay": 0.1}, {"params": no_decay, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=lr, betas=(0.9, 0.95))
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / warmup))

    model.train()
    losses = []
    for _ in range(steps):
        starts = [choice.randrange(len(data) - model.block_size) for _ in range(batch_size)]
        x = torch.stack([data[i : i + model.block_size] for i in starts]).to(device)
        y = torch.stack([data[i + 1 : i + 1 + model.block_size] for i in starts]).to(device)
        _, loss = model(x, y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
    return losses


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()

    torch.manual_seed(0)
    model = build().to(options.device)
    print(f"{sum(p.numel() for p in model.parameters()) / 1e6:.2f}M parameters")
    losses = train(model, options.steps)
    for step in range(0, len(losses), max(1, len(losses) // 10)):
        print(f"step {step:4d}  loss {losses[step]:.4f}")
    model.eval()
    start = torch.tensor([[NUMBER["\n"]]], device=options.device)
    print("".join(CHARACTERS[i] for i in model.generate(start, 200)[0].tolist()))


if __name__ == "__main__":
    main()
