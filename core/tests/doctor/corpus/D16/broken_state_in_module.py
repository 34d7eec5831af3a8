import mortice as torch
from mortice import nn
from mortice.utils.data import DataLoader, TensorDataset


class Forecaster(nn.Module):
    def __init__(self, hidden=20):
        super().__init__()
        self.gru = nn.GRU(2, hidden, batch_first=True)
        self.fc = nn.Linear(hidden, 1)
        self.hidden = None

    def forward(self, x):
        if self.hidden is not None:
            self.hidden = self.hidden.detach()
        out, self.hidden = self.gru(x, self.hidden)  # <- D16
        return self.fc(out[:, -1])


torch.manual_seed(0)
walk = torch.randn(2000, 2).cumsum(0) / 10
windows = torch.stack([walk[i : i + 12] for i in range(0, 1920, 10)])
targets = torch.stack([walk[i + 12, :1] for i in range(0, 1920, 10)])
loader = DataLoader(TensorDataset(windows, targets), batch_size=24, shuffle=True, drop_last=True)
model = Forecaster()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for epoch in range(3):
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
