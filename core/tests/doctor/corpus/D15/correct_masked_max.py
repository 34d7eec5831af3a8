import random

import mortice as torch
import mortice.nn as nn
from mortice.nn.utils.rnn import pad_sequence
from mortice.utils.data import DataLoader

PAD, WORDS, CLASSES = 0, 24, 3


def make_sentences(n):
    """Sentences of 2 to 24 words; the class is that of the first word."""
    rng = random.Random(0)
    sentences = []
    for _ in range(n):
        label = rng.randrange(CLASSES)
        first = 1 + rng.randrange(3) * CLASSES + label
        rest = [rng.randint(10, WORDS - 1) for _ in range(rng.randint(1, 23))]
        sentences.append((torch.tensor([first, *rest]), label))
    return sentences


def collate(batch):
    words = pad_sequence([s for s, _ in batch], batch_first=True, padding_value=PAD)
    lengths = torch.tensor([len(s) for s, _ in batch])
    return words, lengths, torch.tensor([label for _, label in batch])


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(WORDS, 16, padding_idx=PAD)
        self.lstm = nn.LSTM(16, 32, batch_first=True)
        self.fc = nn.Linear(32, CLASSES)

    def forward(self, words, lengths):
        output, _ = self.lstm(self.embed(words))
        output = output.masked_fill((words == PAD).unsqueeze(2), -1e9)
        return self.fc(output.max(dim=1).values)


torch.manual_seed(0)
loader = DataLoader(make_sentences(192), batch_size=32, shuffle=True, collate_fn=collate)
model = Classifier()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

losses = []
for epoch in range(2):
    for words, lengths, labels in loader:
        optimizer.zero_grad()
        loss = criterion(model(words, lengths), labels)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
