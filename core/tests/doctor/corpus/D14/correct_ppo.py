import mortice as torch
from mortice import nn
from mortice.distributions import Categorical

torch.manual_seed(0)


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 32), nn.Tanh())
        self.actor = nn.Sequential(nn.Linear(32, 3), nn.Softmax(dim=-1))
        self.critic = nn.Linear(32, 1)

    def forward(self, x):
        h = self.body(x)
        return Categorical(self.actor(h)), self.critic(h).squeeze(-1)


model = ActorCritic()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
losses = []
for iteration in range(5):
    states = torch.randn(64, 4)
    with torch.no_grad():
        policy, values = model(states)
        actions = policy.sample()
        old = policy.log_prob(actions)
    rewards = (actions == (states[:, 0] > 0).long()).float()
    advantage = rewards - values
    advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
    for _ in range(4):
        policy, value = model(states)
        ratio = (policy.log_prob(actions) - old).exp()
        clipped = torch.clamp(ratio, 0.8, 1.2) * advantage
        loss = -torch.min(ratio * advantage, clipped).mean()
        loss = loss + 0.5 * nn.functional.mse_loss(value, rewards) - 0.01 * policy.entropy().mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        losses.append(loss.item())
