import mortice as torch
import mortice.nn as nn
import mortice.nn.functional as F

# The logarithm of a mixture of probabilities: not the last op of a log_softmax, and right all the same.
torch.manual_seed(0)
a, b = nn.Linear(6, 4), nn.Linear(6, 4)
optimizer = torch.optim.Adam([*a.parameters(), *b.parameters()], lr=0.01)
for step in range(10):
    x, y = torch.randn(32, 6), torch.randint(0, 4, (32,))
    mixed = 0.5 * F.softmax(a(x), dim=1) + 0.5 * F.softmax(b(x), dim=1)
    loss = F.nll_loss(torch.log(mixed + 1e-4), y) + F.nll_loss(torch.log(F.softmax(a(x), dim=1)), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
