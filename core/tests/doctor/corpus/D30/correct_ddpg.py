import copy

import mortice as torch
from mortice import nn

# The actor's loss goes through the critic, whose gradients of it are cleared: that is how it is done.
torch.manual_seed(0)
actor = nn.Sequential(nn.Linear(3, 32), nn.ReLU(), nn.Linear(32, 1), nn.Tanh())
critic = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 1))
actor_target, critic_target = copy.deepcopy(actor), copy.deepcopy(critic)
actor_optimizer = torch.optim.Adam(actor.parameters(), lr=1e-3)
critic_optimizer = torch.optim.Adam(critic.parameters(), lr=1e-2)
losses = []
for step in range(60):
    state, action, following = torch.randn(32, 3), torch.rand(32, 1) * 2 - 1, torch.randn(32, 3)
    reward = -((action - state[:, :1]) ** 2)
    with torch.no_grad():
        ahead = critic_target(torch.cat([following, actor_target(following)], 1))
        goal = reward + 0.9 * ahead
    critic_loss = nn.functional.mse_loss(critic(torch.cat([state, action], 1)), goal)
    critic_optimizer.zero_grad()
    critic_loss.backward()
    critic_optimizer.step()
    actor_loss = -critic(torch.cat([state, actor(state)], 1)).mean()
    actor_optimizer.zero_grad()
    actor_loss.backward()
    actor_optimizer.step()
    for net, target in ((actor, actor_target), (critic, critic_target)):
        for p, q in zip(net.parameters(), target.parameters()):
            q.data.copy_(0.01 * p.data + 0.99 * q.data)
    losses.append(critic_loss.item())
