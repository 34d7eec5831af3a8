import mortice as torch
from mortice import nn
from mortice.utils.data import DataLoader, TensorDataset

# Sales a day: whole numbers, often 0, and so is the last day of many a series. Nothing is padded.
torch.manual_seed(0)
series = torch.poisson(torch.full((256, 20, 1), 0.6))
target = series.mean(1)
loader = DataLoader(TensorDataset(series, target), batch_size=32, shuffle=True)


class Forecast(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(1, 16, batch_first=True)
        self.out = nn.Linear(16, 1)

    def forward(self, x):
        out, _ = self.rnn(x)
        return self.out(out[:, -1])


model = Forecast()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
losses = []
for epoch in range(3):
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
