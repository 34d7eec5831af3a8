import mortice as torch
from mortice import nn


class Adder(nn.Module):
    """The sum of the two marked numbers in a sequence of forty."""

    def __init__(self):
        super().__init__()
        self.rnn = nn.RNN(2, 32, batch_first=True, nonlinearity="relu")
        self.fc = nn.Linear(32, 1)

    def forward(self, x):
        out, h = self.rnn(x)
        return self.fc(out[:, -1])


def make(n, length=40):
    numbers, marks = torch.rand(n, length), torch.zeros(n, length)
    for i in range(n):
        marks[i, torch.randperm(length)[:2]] = 1
    return torch.stack([numbers, marks], dim=2), (numbers * marks).sum(1, keepdim=True)


torch.manual_seed(0)
x, y = make(64)
model = Adder()
with torch.no_grad():
    model.rnn.weight_hh_l0.copy_(torch.eye(32))
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
losses = []
for step in range(80):
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()  # <- D18: the loss overflows
    optimizer.step()  # <- D20
    losses.append(loss.item())
