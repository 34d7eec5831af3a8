"""An LSTM learns English character by character from sentences of unequal length, packed: `python char_lstm.py`."""

import argparse
import random
import re

from example_data import load_text

import mortice as torch
import mortice.nn as nn
from mortice.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence
from mortice.utils.data import DataLoader, Dataset

PAD, CHARACTERS = 0, "\n" + "".join(map(chr, range(32, 127)))
NUMBER = {c: i + 1 for i, c in enumerate(CHARACTERS)}


class Sentences(Dataset):
    """Sentences of the text as tensors of character numbers; a line break begins and ends each."""

    def __init__(self, shortest=10, longest=40):
        found = re.split(r"(?<=[.:;])\s+", load_text().replace("\n", " "))
        self.sentences = [s for s in found if shortest <= len(s) <= longest and s.isascii()]

    def __len__(self):
        return len(self.sentences)

    def __getitem__(self, index):
        return torch.tensor([NUMBER[c] for c in f"\n{self.sentences[index]}\n"])


def collate(batch):
    """Pad the sentences of a batch to the longest; the targets are the inputs one character later."""
    lengths = torch.tensor([len(sentence) - 1 for sentence in batch])
    padded = pad_sequence(batch, batch_first=True, padding_value=PAD)
    return padded[:, :-1], padded[:, 1:], lengths


class CharLSTM(nn.Module):
    def __init__(self, embedding=32, hidden=128, layers=2):
        super().__init__()
        self.embed = nn.Embedding(len(CHARACTERS) + 1, embedding, padding_idx=PAD)
        self.lstm = nn.LSTM(embedding, hidden, num_layers=layers, batch_first=True)
        self.decoder = nn.Linear(hidden, len(CHARACTERS) + 1)

    def forward(self, x, lengths, state=None):
        packed = pack_padded_sequence(self.embed(x), lengths, batch_first=True, enforce_sorted=False)
        output, state = self.lstm(packed, state)
        output, _ = pad_packed_sequence(output, batch_first=True, total_length=x.size(1))
        return self.decoder(output), state


def build(embedding=32, hidden=128, layers=2):
    return CharLSTM(embedding, hidden, layers)


def train(model, steps, batch_size=32, lr=5e-3):
    device = next(model.parameters()).device
    dataset = Sentences()
    order = random.Random(0).sample(range(len(dataset)), len(dataset))
    loader = DataLoader(dataset, batch_size=batch_size, sampler=order, collate_fn=collate)
    criterion = nn.CrossEntropyLoss(ignore_index=PAD)
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)

    model.train()
    losses = []
    while len(losses) < steps:
        for x, y, lengths in loader:
            x, y = x.to(device), y.to(device)
            optimizer.zero_grad()
            logits, _ = model(x, lengths)
            loss = criterion(logits.transpose(1, 2), y)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            losses.append(loss.item())
            if len(losses) == steps:
                break
    return losses


@torch.no_grad()
def write(model, start, longest=60):
    """Continue a sentence with the likeliest characters."""
    device = next(model.parameters()).device
    model.eval()
    numbers, state = [NUMBER[c] for c in f"\n{start}"], None
    read = numbers
    while len(numbers) < longest and CHARACTERS[numbers[-1] - 1] != "\n" or state is None:
        logits, state = model(torch.tensor([read], device=device), torch.tensor([len(read)]), state)
        numbers.append(logits[0, -1, 1:].argmax().item() + 1)
        read = numbers[-1:]
    return "".join(CHARACTERS[n - 1] for n in numbers[1:]).strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()

    torch.manual_seed(0)
    model = build().to(options.device)
    losses = train(model, options.steps)
    for step in range(0, len(losses), max(1, len(losses) // 10)):
        print(f"step {step:4d}  loss {losses[step]:.4f}")
    for start in ("The", "If", "A class"):
        print(write(model, start))


if __name__ == "__main__":
    main()
