import mortice as torch
from mortice import nn

torch.manual_seed(0)
x = torch.linspace(-3, 3, 64).unsqueeze(1)
y = torch.sin(x)
model = nn.Sequential(nn.Linear(1, 24), nn.Tanh(), nn.Linear(24, 1))
optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=4)


def closure():
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    return loss


for step in range(10):
    loss = optimizer.step(closure)  # <- D03
