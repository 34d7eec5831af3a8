import mortice as torch
from mortice import nn

torch.manual_seed(0)
x = torch.linspace(-2, 2, 40).unsqueeze(1)
y = x**2

model = nn.Sequential(nn.Linear(1, 12), nn.Tanh(), nn.Linear(12, 1))
optimizer = torch.optim.LBFGS(model.parameters(), max_iter=5, line_search_fn="strong_wolfe")


def closure():
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    return loss


for step in range(8):
    optimizer.step(closure)

# Learning to begin well (MAML): the inner step keeps its graph.
w = torch.zeros(2, requires_grad=True)
outer = torch.optim.SGD([w], lr=0.1)
for step in range(12):
    slope = torch.randn(1)
    outer.zero_grad()
    inner = ((w[0] * x + w[1] - slope * x) ** 2).mean()
    (grad,) = torch.autograd.grad(inner, w, create_graph=True)
    fast = w - 0.1 * grad
    ((fast[0] * x + fast[1] - slope * x) ** 2).mean().backward()
    outer.step()
