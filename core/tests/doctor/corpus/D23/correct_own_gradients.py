import mortice as torch
from mortice import nn

# Gradients of single samples and of two losses, kept as attributes of the parameters.
torch.manual_seed(0)
x, y = torch.randn(64, 5), torch.randn(64, 1)
model = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
losses = []
for step in range(10):
    out = model(x)
    first, second = nn.functional.mse_loss(out, y), out.pow(2).mean()
    for p, g in zip(model.parameters(), torch.autograd.grad(first, model.parameters(), retain_graph=True)):
        p.grad1 = g
    for p, g in zip(model.parameters(), torch.autograd.grad(second, model.parameters())):
        p.grad2, p.data0 = g, p.data.clone()
    for p in model.parameters():
        p.grads = [p.grad1, p.grad2]
        p.grad = p.grads[0] + 0.01 * p.grads[1]
    optimizer.step()
    losses.append(first.item())
