import mortice as torch
import mortice.nn as nn

# Differences of all pairs, which are wanted: distances, ranks, masks of pairs with one label.


def pairwise(a, b):
    return (a**2).sum(1, keepdim=True) - 2 * a @ b.t() + (b**2).sum(1)


torch.manual_seed(0)
model = nn.Linear(5, 1)
encoder = nn.Linear(5, 8)
optimizer = torch.optim.SGD([*model.parameters(), *encoder.parameters()], lr=0.1)
x = torch.randn(24, 5)
rank = torch.arange(24.0)
labels = torch.randint(0, 3, (24,))
for step in range(6):
    scores = model(x)
    margins = scores - scores.squeeze(1)
    wanted = torch.sign(rank[:, None] - rank)
    ranking = torch.nn.functional.softplus(-wanted * margins).mean()
    same = (labels.view(-1, 1) == labels).float()
    z = encoder(x)
    distances = pairwise(z, z)
    norms = z.norm(dim=1, keepdim=True) * z.norm(dim=1)
    loss = ranking + (same * distances).mean() + (z @ z.t() / norms).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
