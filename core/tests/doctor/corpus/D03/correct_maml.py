import mortice as torch
from mortice import nn
from mortice.func import functional_call

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(1, 20), nn.Tanh(), nn.Linear(20, 1))
meta = torch.optim.Adam(model.parameters(), lr=1e-2)
losses = []
for step in range(20):
    meta.zero_grad()
    total = 0.0
    for task in range(3):
        phase, scale = torch.rand(1) * 3, torch.rand(1) + 0.5
        x = torch.rand(10, 1) * 4 - 2
        y = scale * torch.sin(x + phase)
        weights = dict(model.named_parameters())
        inner = nn.functional.mse_loss(functional_call(model, weights, (x[:5],)), y[:5])
        grads = torch.autograd.grad(inner, list(weights.values()), create_graph=True)
        weights = {name: w - 0.05 * g for (name, w), g in zip(weights.items(), grads)}
        outer = nn.functional.mse_loss(functional_call(model, weights, (x[5:],)), y[5:])
        (outer / 3).backward()
        total += outer.item()
    meta.step()
    losses.append(total)
