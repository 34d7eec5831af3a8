import mortice as torch
import mortice.nn as nn

torch.manual_seed(0)
backbone = nn.Sequential(nn.Linear(10, 32), nn.ReLU())
head = nn.Linear(32, 2)
for p in backbone.parameters():
    p.requires_grad = False  # the backbone is to stay as it is

x, y = torch.randn(64, 10), torch.randint(0, 2, (64,))
optimizer = torch.optim.SGD([*backbone.parameters(), *head.parameters()], lr=0.1)
losses = []
for epoch in range(20):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(head(backbone(x)), y)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
