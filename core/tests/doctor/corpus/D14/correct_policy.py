import mortice as torch
import mortice.nn as nn
import mortice.nn.functional as F

# Policy gradients by NLLLoss with an advantage for each sample.
torch.manual_seed(0)
policy = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 3), nn.LogSoftmax(dim=1))
optimizer = torch.optim.Adam(policy.parameters(), lr=0.01)
for step in range(8):
    states = torch.randn(20, 4)
    logs = policy(states)
    actions = torch.multinomial(logs.detach().exp(), 1).squeeze(1)
    advantages = torch.randn(20)
    loss = (F.nll_loss(logs, actions, reduction="none") * advantages).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
