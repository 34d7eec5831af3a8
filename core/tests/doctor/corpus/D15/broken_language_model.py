import random

import mortice as torch
import mortice.nn as nn

PAD, LETTERS = 0, 20


def lines(n):
    rng = random.Random(1)
    return [[1 + (rng.randrange(3) + i) % (LETTERS - 1) for i in range(rng.randint(4, 24))] for _ in range(n)]


def pad(batch):
    longest = max(map(len, batch))
    return torch.tensor([line + [PAD] * (longest - len(line)) for line in batch])


class LM(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(LETTERS, 16)
        self.rnn = nn.LSTM(16, 32, batch_first=True)
        self.out = nn.Linear(32, LETTERS)

    def forward(self, x):
        return self.out(self.rnn(self.embed(x))[0])


torch.manual_seed(0)
text = lines(96)
model = LM()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
criterion = nn.CrossEntropyLoss()
for epoch in range(3):
    for i in range(0, len(text), 16):
        batch = pad(text[i : i + 16])
        logits = model(batch[:, :-1])
        loss = criterion(logits.reshape(-1, LETTERS), batch[:, 1:].reshape(-1))  # <- D15
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
