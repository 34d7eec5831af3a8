import mortice as torch
import mortice.nn as nn
import mortice.nn.functional as F

# A policy asked for one state: the logits are one row without a batch, and dim 0 is the only one.
torch.manual_seed(0)
policy = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 2))
optimizer = torch.optim.Adam(policy.parameters(), lr=0.01)
for episode in range(4):
    logs = []
    for _ in range(5):
        p = F.softmax(policy(torch.randn(4)), dim=0)
        action = torch.multinomial(p, 1).item()
        best = p.argmax()
        logs.append(torch.log(p[action]))
    loss = -torch.stack(logs).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

# Tokens first, then classes last: each position's classes compete, and are moved to dim 1 for the loss.
scores = torch.randn(6, 9, 5, requires_grad=True)
loss = F.nll_loss(F.log_softmax(scores, dim=2).transpose(1, 2), torch.randint(0, 5, (6, 9)))
loss.backward()
best = F.softmax(scores, dim=-1).argmax(-1)
