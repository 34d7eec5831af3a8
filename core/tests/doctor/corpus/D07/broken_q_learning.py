import mortice as torch
import mortice.nn as nn

torch.manual_seed(0)
q = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
target = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
target.load_state_dict(q.state_dict())
optimizer = torch.optim.Adam(q.parameters(), lr=1e-3)
for step in range(5):
    state, following = torch.randn(64, 4), torch.randn(64, 4)
    action, reward = torch.randint(0, 2, (64, 1)), torch.rand(64)
    with torch.no_grad():
        wanted = reward + 0.99 * target(following).max(1).values
    value = q(state).gather(1, action)
    loss = nn.functional.smooth_l1_loss(value, wanted)  # <- D07
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
