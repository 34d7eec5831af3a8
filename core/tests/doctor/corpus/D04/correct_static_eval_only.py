# static
# Softmax only when it does not train; and attention, whose softmax is followed by a product.
import torch
from torch import nn


class Classifier(nn.Module):
    def __init__(self, size, classes):
        super().__init__()
        self.score = nn.Linear(size, 1)
        self.out = nn.Linear(size, classes)

    def forward(self, x):
        weights = torch.softmax(self.score(x), dim=1)
        x = self.out((weights * x).sum(dim=1))
        if self.training:
            return x
        return torch.softmax(x, dim=-1)


model = Classifier(32, 4)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters())
for x, y in loader:
    optimizer.zero_grad()
    criterion(model(x), y).backward()
    optimizer.step()
