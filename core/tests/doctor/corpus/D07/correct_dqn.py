import random
from collections import deque

import mortice as torch
from mortice import nn

random.seed(0)
torch.manual_seed(0)
q_net = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
target = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
target.load_state_dict(q_net.state_dict())
target.eval()
optimizer = torch.optim.Adam(q_net.parameters(), lr=1e-3)
memory = deque(maxlen=500)


def act(state, epsilon=0.2):
    if random.random() < epsilon:
        return torch.tensor([[random.randrange(2)]])
    with torch.no_grad():
        return q_net(state).max(1)[1].view(1, 1)


losses = []
state = torch.randn(1, 4)
for t in range(80):
    action = act(state)
    following = None if t % 10 == 9 else torch.randn(1, 4)
    reward = torch.tensor([float(action.item() == int(state[0, 0] > 0))])
    memory.append((state, action, following, reward))
    state = torch.randn(1, 4) if following is None else following
    if len(memory) < 16:
        continue
    s, a, n, r = zip(*random.sample(memory, 16))
    going = torch.tensor([x is not None for x in n], dtype=torch.bool)
    values = q_net(torch.cat(s)).gather(1, torch.cat(a))
    ahead = torch.zeros(16)
    with torch.no_grad():
        ahead[going] = target(torch.cat([x for x in n if x is not None])).max(1)[0]
    loss = nn.functional.smooth_l1_loss(values, (ahead * 0.9 + torch.cat(r)).unsqueeze(1))
    optimizer.zero_grad()
    loss.backward()
    for p in q_net.parameters():
        p.grad.data.clamp_(-1, 1)
    optimizer.step()
    losses.append(loss.item())
    if t % 20 == 0:
        target.load_state_dict(q_net.state_dict())
