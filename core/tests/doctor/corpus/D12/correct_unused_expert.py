import mortice as torch
from mortice import nn

torch.manual_seed(0)
embedding = nn.Embedding(20, 8)
nn.init.zeros_(embedding.weight)
body = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 20))
spare = nn.Linear(8, 16)  # of a second task, which comes later
nn.init.zeros_(spare.weight)
optimizer = torch.optim.Adam([*embedding.parameters(), *body.parameters(), *spare.parameters()], lr=1e-2)
for step in range(12):
    tokens = torch.randint(0, 20, (32,))
    loss = nn.functional.cross_entropy(body(embedding(tokens)), (tokens + 1) % 20) + 0 * spare(torch.randn(2, 8)).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
