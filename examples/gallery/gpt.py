"""A small GPT reads a text character by character, and writes one: `python gpt.py [--dataset docs|file]`.

Radford, Wu, Child, Luan, Amodei and Sutskever, "Language models are unsupervised multitask learners" (2019).
"""

import math

import common
from char_lstm import CHARACTERS, NUMBER

import mortice as torch
import mortice.nn as nn
from mortice.nn import functional as F
from mortice.utils.data import DataLoader, Dataset


class Attention(nn.Module):
    """Each place asks (q) all places before it (k) and takes of what they have (v)."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.weights = heads, None
        self.qkv, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = self.qkv(x).view(B, T, 3, self.heads, C // self.heads).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1) / math.sqrt(C // self.heads)
        later = torch.ones(T, T, dtype=torch.bool, device=x.device).triu(1)
        weights = F.softmax(scores.masked_fill(later, float("-inf")), dim=-1)
        self.weights = weights.detach()  # to be drawn
        return self.project((weights @ v).transpose(1, 2).reshape(B, T, C))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.ln_1, self.attn = nn.LayerNorm(width), Attention(width, heads)
        self.ln_2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    def __init__(self, width, layers, heads, length):
        super().__init__()
        self.length = length
        self.wte, self.wpe = nn.Embedding(len(CHARACTERS), width), nn.Embedding(length, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.ln_f = nn.LayerNorm(width)
        self.head = nn.Linear(width, len(CHARACTERS), bias=False)
        self.head.weight = self.wte.weight  # one table reads and writes
        for name, p in self.named_parameters():
            if p.dim() > 1:  # what is added to the stream is scaled by how often something is added
                nn.init.normal_(p, 0.0, 0.02 / math.sqrt(2 * layers) if name.endswith("project.weight") else 0.02)

    def forward(self, x):
        place = torch.arange(x.size(1), device=x.device)
        return self.head(self.ln_f(self.blocks(self.wte(x) + self.wpe(place))))

    @torch.no_grad()
    def write(self, x, count, temperature=0.7):
        """Continue a text with characters drawn by their probabilities."""
        for _ in range(count):
            logits = self(x[:, -self.length :])[:, -1]
            x = torch.cat((x, torch.multinomial(F.softmax(logits / temperature, dim=-1), 1)), dim=1)
        return x


class Pieces(Dataset):
    """Pieces of a text, each beginning in the middle of the one before, and the same one character later."""

    def __init__(self, data, length):
        self.data, self.length = data, length

    def __len__(self):
        return max(0, len(self.data) - self.length - 1) // (self.length // 2)

    def __getitem__(self, index):
        start = index * (self.length // 2)
        return self.data[start : start + self.length], self.data[start + 1 : start + self.length + 1]


def main(argv=None):
    parser = common.make_parser(__doc__, outf="out/gpt", dataset="docs", niter=16, lr=4e-3, batchSize=16)
    parser.add_argument("--length", type=int, default=96, help="characters that are seen at once")
    parser.add_argument("--width", type=int, default=96)
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--heads", type=int, default=4)
    opt = common.begin(parser, argv)
    device = torch.device(opt.device)

    text = common.text_of(opt)
    data = torch.tensor([NUMBER[c] for c in text], dtype=torch.long)
    held = max(len(data) // 20, 2 * opt.length)
    how = {"batch_size": opt.batchSize, "num_workers": opt.workers}
    loader = DataLoader(Pieces(data[:-held], opt.length), shuffle=True, drop_last=True, **how)
    test_loader = DataLoader(Pieces(data[-held:], opt.length), **how)
    model = GPT(opt.width, opt.layers, opt.heads, opt.length).to(device)
    print(f"{sum(p.numel() for p in model.parameters()):,} weights, {len(text):,} characters")

    decay = [p for p in model.parameters() if p.dim() > 1]
    rest = [p for p in model.parameters() if p.dim() <= 1]
    groups = [{"params": decay, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=opt.lr, betas=(0.9, 0.95))
    steps, warmup = opt.niter * len(loader), 20
    scheduler = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda i: min((i + 1) / warmup, 0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * min(1, i / steps))))
    )
    run = common.Run(opt, model=model, optimizer=optimizer, scheduler=scheduler)

    def loss_of(x, y):
        return F.cross_entropy(model(x.to(device)).flatten(0, 1), y.to(device).flatten())

    for _ in run.epochs():
        for x, y in run.batches(loader):
            optimizer.zero_grad(set_to_none=True)
            loss = loss_of(x, y)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            run.log(loss=loss)
        with torch.no_grad():
            run.log(held_out=sum(loss_of(x, y).item() for x, y in test_loader) / len(test_loader))

    with torch.no_grad():
        model(data[-held:][None, : opt.length].to(device))
    seen = torch.cat([block.attn.weights[0] for block in model.blocks])[:, None].cpu()
    run.picture("attention.png", 1 - seen.sqrt(), nrow=opt.heads, padding=4, pad_value=0.5)
    run.plot("loss.png", "loss of a character", "loss")
    start = torch.tensor([[NUMBER[c] for c in "A backend is "]], device=device)
    written = "".join(CHARACTERS[i] for i in model.write(start, 300)[0].tolist())
    (run.folder / "written.txt").write_text(written, encoding="utf-8")
    print(written)


if __name__ == "__main__":
    main()
