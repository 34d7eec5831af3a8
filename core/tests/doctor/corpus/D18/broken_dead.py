import mortice as torch
import mortice.nn as nn
import mortice.nn.functional as F

torch.manual_seed(0)
x = torch.rand(256, 10) * 10
y = x @ torch.randn(10, 1) + 30


class Regression(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(10, 32)
        self.fc2 = nn.Linear(32, 1)

    def forward(self, x):
        return self.fc2(F.relu(self.fc1(x)))  # <- D18


model = Regression()
optimizer = torch.optim.SGD(model.parameters(), lr=0.03)
losses = []
for i in range(110):
    optimizer.zero_grad()
    loss = F.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
