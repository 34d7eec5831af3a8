import mortice as torch
import mortice.nn as nn
import mortice.nn.functional as F


class GraphLayer(nn.Module):
    """Attention whose scores are cut at 0: the softmax is not the end."""

    def __init__(self, size, out):
        super().__init__()
        self.score = nn.Linear(size, size)
        self.value = nn.Linear(size, out)

    def forward(self, x):
        scores = F.relu(self.score(x) @ x.transpose(1, 2))
        return F.softmax(scores, dim=-1) @ self.value(x)


torch.manual_seed(0)
model = nn.Sequential(GraphLayer(6, 12), nn.ReLU(), nn.Flatten(), nn.Linear(60, 3))
optimizer = torch.optim.Adam(model.parameters())
for step in range(6):
    x, y = torch.randn(16, 5, 6), torch.randint(0, 3, (16,))
    loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
