import mortice as torch
from mortice import nn

torch.manual_seed(0)
policy = nn.Sequential(nn.Linear(4, 32), nn.Dropout(0.6), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)

for episode in range(6):
    log_probs, rewards = [], []
    state = torch.randn(1, 4)
    for t in range(15):
        chances = torch.distributions.Categorical(logits=policy(state))
        action = chances.sample()
        log_probs.append(chances.log_prob(action))
        rewards.append(float(state[0, 0] > 0) if action.item() else 0.5)
        state = 0.9 * state + 0.3 * torch.randn(1, 4)
    returns = torch.tensor(rewards).flip(0).cumsum(0).flip(0)
    loss = -(torch.cat(log_probs) * (returns - returns.mean())).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
