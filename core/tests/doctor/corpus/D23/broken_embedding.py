import mortice as torch
from mortice import nn


class Classifier(nn.Module):
    def __init__(self, vectors):
        super().__init__()
        self.embedding = nn.Embedding(*vectors.shape)
        self.embedding.weight.data.copy_(vectors)
        self.embedding.weight.requires_gard = False
        self.fc = nn.Linear(vectors.shape[1], 2)

    def forward(self, tokens):
        return self.fc(self.embedding(tokens).mean(dim=1))


torch.manual_seed(1)
model = Classifier(torch.randn(50, 8))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
tokens, labels = torch.randint(0, 50, (40, 6)), torch.randint(0, 2, (40,))
for epoch in range(5):
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(tokens), labels).backward()
    optimizer.step()  # <- D23
