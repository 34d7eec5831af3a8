import mortice as torch
from mortice import nn

torch.manual_seed(0)
layers = []
for i in range(19):
    linear = nn.Linear(64, 64)
    nn.init.normal_(linear.weight)
    layers += [linear, nn.Tanh()]
model = nn.Sequential(*layers, nn.Linear(64, 1))

x = torch.randn(32, 64)
y = x[:, :1].sin()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-5)
losses = []
for i in range(22):
    loss = ((model(x) - y) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()  # <- D18
    optimizer.step()
    losses.append(loss.item())
