import mortice as torch
from mortice import nn

torch.manual_seed(0)
encoder = nn.Sequential(nn.Linear(10, 16), nn.ReLU())
head = nn.Linear(16, 3)
# One loss, two optimizers: the gradients of both are used.
slow, fast = torch.optim.SGD(encoder.parameters(), lr=0.01), torch.optim.Adam(head.parameters(), lr=1e-2)
for step in range(20):
    x, y = torch.randn(32, 10), torch.randint(0, 3, (32,))
    slow.zero_grad()
    fast.zero_grad()
    nn.functional.cross_entropy(head(encoder(x)), y).backward()
    fast.step()
    slow.step()

# Architecture search: weights and choices take turns, and each runs through the other.
choice = nn.Parameter(torch.zeros(2))
left, right, last = nn.Linear(10, 8), nn.Linear(10, 8), nn.Linear(8, 3)
weights = [*left.parameters(), *right.parameters(), *last.parameters()]
w_opt, a_opt = torch.optim.SGD(weights, lr=0.05), torch.optim.Adam([choice], lr=1e-2)


def loss():
    x, y = torch.randn(32, 10), torch.randint(0, 3, (32,))
    mix = choice.softmax(0)
    h = torch.relu(mix[0] * left(x) + mix[1] * torch.tanh(right(x)))
    return nn.functional.cross_entropy(last(h) * (1 + choice[0]), y)


for step in range(15):
    a_opt.zero_grad()
    loss().backward()
    a_opt.step()
    w_opt.zero_grad()
    loss().backward()
    w_opt.step()
