import mortice as torch
import mortice.nn as nn
from mortice.utils.data import DataLoader, TensorDataset

H = 16


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(3, H, batch_first=True, bidirectional=True)
        self.fc = nn.Linear(2 * H, 2)

    def forward(self, x):
        out, (h, c) = self.rnn(x)
        last, first = out[:, -1], out[:, 0]
        return self.fc(torch.cat([last[:, :H], first[:, H:]], dim=1))


torch.manual_seed(0)
x = torch.randn(128, 15, 3)
y = (x[:, 0, 0] > 0).long()
loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)
model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
losses = []
for epoch in range(3):
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), targets)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
