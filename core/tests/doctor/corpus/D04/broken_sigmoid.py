import mortice as torch
import mortice.nn as nn
from mortice.utils.data import DataLoader, TensorDataset


class SpamFilter(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(12, 16)
        self.out = nn.Linear(16, 1)
        self.sigmoid = nn.Sigmoid()

    def forward(self, x):
        x = torch.relu(self.hidden(x))
        return self.sigmoid(self.out(x)).squeeze(1)


torch.manual_seed(1)
x = torch.randn(256, 12)
y = (x[:, :3].sum(1) > 0).float()
loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
model = SpamFilter()
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for epoch in range(3):
    for inputs, labels in loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), labels)  # <- D04
        loss.backward()
        optimizer.step()
