import mortice as torch
import mortice.nn as nn
import mortice.nn.functional as F


class Attention(nn.Module):
    """Pooling by attention: its softmax is no output."""

    def __init__(self, size, classes):
        super().__init__()
        self.score = nn.Linear(size, 1)
        self.value = nn.Linear(size, classes)

    def forward(self, x):
        weights = F.softmax(self.score(x), dim=1)
        return (weights * self.value(x)).sum(1)


torch.manual_seed(0)
model = Attention(6, 3)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
x = torch.randn(48, 7, 6)
y = torch.randint(0, 3, (48,))
for step in range(20):
    loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

model.eval()
with torch.no_grad():
    probabilities = F.softmax(model(x), dim=1)
    confident = (probabilities.max(1).values > 0.5).float().mean().item()
    loss = F.nll_loss(probabilities.log(), y)
