"""An LSTM reads a text character by character, and writes one: `python char_lstm.py [--dataset docs|file]`.

The text is cut into as many rows as a batch has, and each row is read from left to right: the state is handed from
batch to batch (so nothing is shuffled) and detached, or backward would go back to the beginning of the text.
"""

import common

import mortice as torch
import mortice.nn as nn
from mortice.nn import functional as F

CHARACTERS = "\n" + "".join(map(chr, range(32, 127)))
NUMBER = {c: i for i, c in enumerate(CHARACTERS)}


class CharLSTM(nn.Module):
    def __init__(self, hidden, layers):
        super().__init__()
        self.embed = nn.Embedding(len(CHARACTERS), 64)
        self.lstm = nn.LSTM(64, hidden, layers, batch_first=True, dropout=0.1)
        self.decoder = nn.Linear(hidden, len(CHARACTERS))

    def forward(self, x, state=None):
        output, state = self.lstm(self.embed(x), state)
        return self.decoder(output), state


class Rows:
    """A text as rows, read in batches of (input, target), the target one character later."""

    def __init__(self, data, rows, length):
        self.columns, self.length = (len(data) - 1) // rows, length
        if self.columns < 1:
            raise SystemExit(f"--batchSize {rows}: expected fewer than the {len(data)} characters of the text")
        self.x = data[: rows * self.columns].view(rows, -1)
        self.y = data[1 : rows * self.columns + 1].view(rows, -1)

    def __len__(self):
        return (self.columns + self.length - 1) // self.length

    def __iter__(self):
        for start in range(0, self.columns, self.length):
            yield self.x[:, start : start + self.length], self.y[:, start : start + self.length]


@torch.no_grad()
def write(model, start, count, device, temperature=0.7):
    """Continue a text with characters drawn by their probabilities."""
    model.eval()
    numbers, state = [NUMBER[c] for c in start], None
    read = numbers
    for _ in range(count):
        logits, state = model(torch.tensor([read], device=device), state)
        read = [torch.multinomial(F.softmax(logits[0, -1] / temperature, dim=0), 1).item()]
        numbers += read
    model.train()
    return "".join(CHARACTERS[n] for n in numbers)


@torch.no_grad()
def surprise(model, text, device):
    """Return for each character of a text how unexpected it was: 1 - its probability, given those before."""
    model.eval()
    data = torch.tensor([[NUMBER[c] for c in text]], device=device)
    probability = F.softmax(model(data[:, :-1])[0][0], dim=1)
    model.train()
    return [0.0, *(1 - probability.gather(1, data[0, 1:, None])[:, 0]).tolist()]


def main(argv=None):
    parser = common.make_parser(__doc__, outf="out/char_lstm", dataset="docs", niter=20, lr=4e-3, batchSize=32)
    parser.add_argument("--seqLength", type=int, default=64, help="characters that backward goes back")
    parser.add_argument("--hidden", type=int, default=192)
    parser.add_argument("--layers", type=int, default=2)
    opt = common.begin(parser, argv)
    device = torch.device(opt.device)

    text = common.text_of(opt)
    held = len(text) // 20
    data = torch.tensor([NUMBER[c] for c in text], dtype=torch.long)
    loader = Rows(data[:-held], opt.batchSize, opt.seqLength)
    held_out = Rows(data[-held:], 1, held)
    model = CharLSTM(opt.hidden, opt.layers).to(device)
    print(f"{sum(p.numel() for p in model.parameters()):,} weights, {len(text):,} characters")
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=opt.lr)
    run = common.Run(opt, model=model, optimizer=optimizer)

    for _ in run.epochs():
        state = None
        for x, y in run.batches(loader):
            logits, state = model(x.to(device), state)
            state = tuple(s.detach() for s in state)
            loss = criterion(logits.flatten(0, 1), y.to(device).flatten())
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            run.log(loss=loss)
        model.eval()
        with torch.no_grad():
            ((x, y),) = held_out
            run.log(held_out=criterion(model(x.to(device))[0][0], y[0].to(device)))
        model.train()

    sample = text[-held:][:900]
    common.save_text(run.folder / "surprise.png", sample, surprise(model, sample, device))
    run.plot("loss.png", "loss of a character", "loss")
    written = write(model, "A backend is ", 300, device)
    (run.folder / "written.txt").write_text(written, encoding="utf-8")
    print(written)


if __name__ == "__main__":
    main()
