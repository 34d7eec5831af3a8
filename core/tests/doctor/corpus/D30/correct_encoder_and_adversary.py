import mortice as torch
from mortice import nn

# Domain-adversarial training: the domain's loss goes through the encoder on purpose, and the encoder's step uses it.
torch.manual_seed(0)
x = torch.randn(400, 8)
domain = (torch.arange(400) % 2).long()
y = (x[:, 0] > 0).long()


class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return -0.1 * grad


encoder = nn.Sequential(nn.Linear(8, 16), nn.ReLU())
task, judge = nn.Linear(16, 2), nn.Linear(16, 2)
opt_task = torch.optim.SGD([*encoder.parameters(), *task.parameters()], lr=0.1)
opt_judge = torch.optim.SGD(judge.parameters(), lr=0.1)
losses = []
for step in range(40):
    i = torch.randint(0, 400, (32,))
    opt_task.zero_grad()
    opt_judge.zero_grad()
    features = encoder(x[i])
    loss = nn.functional.cross_entropy(task(features), y[i])
    loss = loss + nn.functional.cross_entropy(judge(Reverse.apply(features)), domain[i])
    loss.backward()
    opt_task.step()
    opt_judge.step()
    losses.append(loss.item())
