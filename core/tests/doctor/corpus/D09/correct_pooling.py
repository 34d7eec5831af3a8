import mortice as torch
import mortice.nn as nn
import mortice.nn.functional as F
from mortice.utils.data import DataLoader, TensorDataset


class Bag(nn.Module):
    """Learning from bags: attention over the instances of a bag, which lie in dim 0."""

    def __init__(self):
        super().__init__()
        self.features = nn.Linear(10, 16)
        self.attention = nn.Sequential(nn.Linear(16, 8), nn.Tanh(), nn.Linear(8, 2))
        self.classify = nn.Linear(32, 1)

    def forward(self, instances):
        h = torch.relu(self.features(instances))
        weights = F.softmax(self.attention(h), dim=0)
        pooled = weights.t() @ h
        return self.classify(pooled.reshape(1, -1))


torch.manual_seed(0)
model = Bag()
optimizer = torch.optim.Adam(model.parameters())
loader = DataLoader(TensorDataset(torch.randn(60, 10)), batch_size=12)
for epoch in range(2):
    for (bag,) in loader:
        loss = F.binary_cross_entropy_with_logits(model(bag), torch.ones(1, 1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
