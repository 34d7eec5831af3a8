import warnings

import mortice as torch
import mortice.nn as nn

warnings.filterwarnings("ignore")
torch.manual_seed(0)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(50, 16)
        self.out = nn.Linear(16, 7)
        self.softmax = nn.LogSoftmax()

    def forward(self, words):
        return self.softmax(self.out(self.embedding(words)))  # <- D09


model = Tagger()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for step in range(5):
    words = torch.randint(0, 50, (8, 12))
    scores = model(words)
    loss = nn.functional.nll_loss(scores.reshape(-1, 7), (words % 7).reshape(-1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
