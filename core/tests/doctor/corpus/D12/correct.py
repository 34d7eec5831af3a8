import mortice as torch
from mortice import nn

torch.manual_seed(0)
x = 2 * torch.randn(256, 2)
y = (x[:, 0] * x[:, 1] > 0).long()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(2, 32)
        self.out = nn.Linear(32, 2)
        for layer in (self.hidden, self.out):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)

    def forward(self, x):
        return self.out(torch.tanh(self.hidden(x)))


model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
losses = []
for step in range(60):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
