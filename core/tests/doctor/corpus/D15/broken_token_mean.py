import random

import mortice as torch
import mortice.nn as nn
from mortice.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence
from mortice.utils.data import DataLoader

WORDS, TAGS = 30, 4


def make(n):
    """Sentences whose words have tags: 0 is a tag like the others."""
    rng = random.Random(0)
    data = []
    for _ in range(n):
        words = [rng.randint(1, WORDS - 1) for _ in range(rng.randint(2, 20))]
        data.append((torch.tensor(words), torch.tensor([w % TAGS for w in words])))
    return data


def collate(batch):
    words = pad_sequence([w for w, _ in batch], batch_first=True)
    tags = pad_sequence([t for _, t in batch], batch_first=True)
    return words, tags, torch.tensor([len(w) for w, _ in batch])


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(WORDS, 16, padding_idx=0)
        self.lstm = nn.LSTM(16, 16, batch_first=True, bidirectional=True)
        self.fc = nn.Linear(32, TAGS)

    def forward(self, words, lengths):
        packed = pack_padded_sequence(self.embed(words), lengths, batch_first=True, enforce_sorted=False)
        out, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True)
        return self.fc(out)


torch.manual_seed(0)
loader = DataLoader(make(128), batch_size=16, shuffle=True, collate_fn=collate)
model = Tagger()
criterion = nn.CrossEntropyLoss(reduction="none")
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for epoch in range(2):
    for words, tags, lengths in loader:
        logits = model(words, lengths)
        losses = criterion(logits.view(-1, TAGS), tags.view(-1))  # <- D15
        loss = losses.mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
