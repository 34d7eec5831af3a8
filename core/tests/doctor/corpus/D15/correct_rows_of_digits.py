import csv
import gzip
from pathlib import Path

import mortice as torch
import mortice.nn as nn

# Row by row, as a sequence of eight: some digits end in empty rows.
path = next(p for p in Path(__file__).parents if (p / "examples").is_dir()) / "examples/data/digits/digits.csv.gz"
with gzip.open(path, "rt") as file:
    rows = [[int(v) for v in row] for row in csv.reader(file) if row and row[0].strip().isdigit()][:600]
table = torch.tensor(rows)
images, labels = (table[:, :64].float() / 16).view(-1, 8, 8), table[:, 64]

torch.manual_seed(0)
rnn = nn.LSTM(8, 32, batch_first=True, bidirectional=True)
fc = nn.Linear(64, 10)
optimizer = torch.optim.Adam([*rnn.parameters(), *fc.parameters()], lr=0.01)
for step in range(20):
    batch = torch.randint(0, len(images), (64,))
    output, (h, c) = rnn(images[batch])
    loss = nn.functional.cross_entropy(fc(torch.cat([h[-2], h[-1]], dim=1)), labels[batch])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
