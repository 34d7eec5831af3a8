import mortice as torch
import mortice.nn as nn
from mortice.utils.data import DataLoader, TensorDataset


class Reader(nn.Module):
    """Reads sequences with a GRU, which wants time first."""

    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(6, 24)
        self.fc = nn.Linear(24, 3)

    def forward(self, x):
        n, t, f = x.shape
        x = x.view(t, n, f)  # <- D06
        _, h = self.gru(x)
        return self.fc(h[-1])


# The class of a sequence is the feature that it repeats.
torch.manual_seed(0)
labels = torch.randint(0, 3, (192,))
x = 0.5 * torch.randn(192, 10, 6)
x[torch.arange(192), :, labels] += 1.0
loader = DataLoader(TensorDataset(x, labels), batch_size=32, shuffle=True)

model = Reader()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=0.005)

losses = []
for epoch in range(8):
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), targets)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
