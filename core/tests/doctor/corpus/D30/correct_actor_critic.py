import mortice as torch
from mortice import nn

torch.manual_seed(0)
actor = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 1), nn.Tanh())
critic = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
actor_opt = torch.optim.Adam(actor.parameters(), lr=1e-3)
critic_opt = torch.optim.Adam(critic.parameters(), lr=1e-3)

for step in range(25):
    state, action = torch.randn(32, 3), torch.rand(32, 1) * 2 - 1
    reward = -((action - state[:, :1]) ** 2)
    critic_loss = nn.functional.mse_loss(critic(torch.cat([state, action], 1)), reward)
    critic_opt.zero_grad()
    critic_loss.backward()
    critic_opt.step()

    # Runs through the critic of need: the actor is before it.
    actor_loss = -critic(torch.cat([state, actor(state)], 1)).mean()
    actor_opt.zero_grad()
    actor_loss.backward()
    actor_opt.step()
