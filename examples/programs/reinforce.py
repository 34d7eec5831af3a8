"""REINFORCE learns to balance a pole on a cart: `python reinforce.py [--steps N] [--device NAME]`; a step is an episode."""

import argparse
import math
import random

import mortice as torch
import mortice.nn as nn
import mortice.nn.functional as F
import mortice.optim as optim
from mortice.distributions import Categorical


class CartPole:
    """A pole hinged on a cart that is pushed left or right: Barto, Sutton and Anderson, 1983."""

    gravity, cart, pole, half_length, force, tau = 9.8, 1.0, 0.1, 0.5, 10.0, 0.02

    def __init__(self, seed, longest=200):
        self.random, self.longest = random.Random(seed), longest

    def reset(self):
        self.time, self.state = 0, [self.random.uniform(-0.05, 0.05) for _ in range(4)]
        return self.state

    def step(self, action):
        x, speed, angle, turning = self.state
        force = self.force if action == 1 else -self.force
        mass, moment = self.cart + self.pole, self.pole * self.half_length
        push = (force + moment * turning**2 * math.sin(angle)) / mass
        turned = (self.gravity * math.sin(angle) - math.cos(angle) * push) / (
            self.half_length * (4 / 3 - self.pole * math.cos(angle) ** 2 / mass)
        )
        moved = push - moment * turned * math.cos(angle) / mass
        self.state = [
            x + self.tau * speed, speed + self.tau * moved, angle + self.tau * turning, turning + self.tau * turned
        ]  # fmt: skip
        self.time += 1
        fallen = abs(self.state[0]) > 2.4 or abs(self.state[2]) > math.radians(12)
        return self.state, 1.0, fallen or self.time == self.longest


class Policy(nn.Module):
    def __init__(self, hidden=128):
        super().__init__()
        self.affine1 = nn.Linear(4, hidden)
        self.affine2 = nn.Linear(hidden, 2)

    def forward(self, x):
        x = F.relu(self.affine1(x))
        action_scores = self.affine2(x)
        return F.softmax(action_scores, dim=1)


def build(hidden=128):
    return Policy(hidden)


def play(policy, environment, choice):
    """Play an episode; return the log probabilities of the actions taken and the rewards."""
    device = next(policy.parameters()).device
    log_probs, rewards, done = [], [], False
    state = environment.reset()
    while not done:
        probs = policy(torch.tensor(state, device=device).unsqueeze(0))
        # Python draws the action, so that a seed decides the episode.
        action = torch.tensor([choice.choices((0, 1), weights=probs[0].tolist())[0]], device=device)
        log_probs.append(Categorical(probs).log_prob(action))
        state, reward, done = environment.step(action.item())
        rewards.append(reward)
    return log_probs, rewards


def train(policy, steps, gamma=0.99, lr=1e-2, longest=200):
    environment, choice = CartPole(seed=0, longest=longest), random.Random(1)
    optimizer = optim.Adam(policy.parameters(), lr=lr)
    losses, lengths = [], []
    for _ in range(steps):
        log_probs, rewards = play(policy, environment, choice)
        returns, total = [], 0.0
        for reward in reversed(rewards):
            total = reward + gamma * total
            returns.insert(0, total)
        returns = torch.tensor(returns, device=log_probs[0].device)
        returns = (returns - returns.mean()) / (returns.std() + 1e-6)
        policy_loss = [-log_prob * total for log_prob, total in zip(log_probs, returns)]
        optimizer.zero_grad()
        policy_loss = torch.cat(policy_loss).sum()
        policy_loss.backward()
        optimizer.step()
        losses.append(policy_loss.item())
        lengths.append(len(rewards))
    return {"loss": losses, "length": lengths}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()

    torch.manual_seed(0)
    policy = build().to(options.device)
    lengths = train(policy, options.steps)["length"]
    for end in range(10, len(lengths) + 1, 10):
        print(f"episodes {end - 9:3d} to {end:3d}: the pole stood {sum(lengths[end - 10 : end]) / 10:.1f} steps")


if __name__ == "__main__":
    main()
