import mortice as torch
import mortice.nn as nn
import mortice.nn.functional as F

# Mixed samples have mixed labels, which sum to 1; padded positions have none.
torch.manual_seed(0)
model = nn.Linear(8, 4)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for step in range(10):
    x = torch.randn(32, 8)
    y = F.one_hot(torch.randint(0, 4, (32,)), 4).float()
    share = torch.rand(1)
    x, y = share * x + (1 - share) * x.flip(0), share * y + (1 - share) * y.flip(0)
    y[-4:] = 0
    loss = F.cross_entropy(model(x), y) + F.cross_entropy(model(x), y, label_smoothing=0.1)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

# Several labels, each with a sigmoid of its own.
tags = (torch.rand(32, 4) < 0.5).float()
loss = F.binary_cross_entropy_with_logits(model(x), tags) + F.multilabel_soft_margin_loss(model(x), tags)
