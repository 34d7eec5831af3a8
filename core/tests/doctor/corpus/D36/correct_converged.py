import mortice as torch
from mortice import nn

torch.manual_seed(0)
x = torch.randn(100, 3)
y = x @ torch.randn(3, 1)

# Least squares without noise: the loss is 0 in the end because all is learned.
model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
for step in range(200):
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()

# With noise it stays at what cannot be explained, and the gradient is as good as 0.
noisy = y + torch.randn(100, 1)
optimizer = torch.optim.LBFGS(model.parameters(), line_search_fn="strong_wolfe")
nn.init.zeros_(model.weight)


def closure():
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), noisy)
    loss.backward()
    return loss


for step in range(60):
    optimizer.step(closure)

# A margin that is kept gives loss and gradient of exactly 0.
model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
sign = y.sign()
for step in range(150):
    optimizer.zero_grad()
    loss = torch.relu(0.001 - sign * model(x)).mean()
    loss.backward()
    optimizer.step()
