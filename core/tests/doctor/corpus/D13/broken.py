# style
import mortice as torch
import mortice.nn as nn

torch.manual_seed(0)
x = torch.randn(240, 8)
y = (x[:, 0] * x[:, 1] + x[:, 2] * x[:, 3] > 0).long()

model = nn.Sequential(
    nn.Linear(8, 32, bias=False),
    nn.BatchNorm1d(32),
    nn.Linear(32, 32, bias=False),
    nn.BatchNorm1d(32),
    nn.Linear(32, 2),
)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
losses = []
for epoch in range(25):
    for i in range(0, 240, 80):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x[i : i + 80]), y[i : i + 80])  # <- D13
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
