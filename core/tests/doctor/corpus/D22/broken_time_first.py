import mortice as torch
import mortice.nn as nn
from mortice.nn.utils.rnn import pad_sequence

torch.manual_seed(0)
# Pen strokes of different lengths: to the right, or back and forth.
strokes, labels = [], []
for i in range(120):
    length = int(torch.randint(4, 30, ()))
    steps = torch.randn(length, 2) * 0.3
    steps[:, 0] += 1.0 if i % 2 else torch.sin(torch.arange(length).float())
    strokes.append(steps)
    labels.append(i % 2)
labels = torch.tensor(labels)


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(2, 16, num_layers=2)
        self.fc = nn.Linear(16, 2)

    def forward(self, x):
        out, _ = self.rnn(x)
        return self.fc(out[-1])  # <- D22


model = Reader()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
losses = []
for step in range(24):
    chosen = torch.randint(0, 120, (24,)).tolist()
    x = pad_sequence([strokes[i] for i in chosen])
    loss = nn.functional.cross_entropy(model(x), labels[chosen])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
