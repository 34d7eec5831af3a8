import mortice as torch
from mortice import nn
from mortice.utils.data import DataLoader, TensorDataset

# Only the largest gradients are sent; what was held back is added next time. Momentum is meant to go on.
torch.manual_seed(0)
x = torch.randn(320, 10)
y = x[:, :3].sum(1, keepdim=True)
loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
model = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
held = {p: torch.zeros_like(p) for p in model.parameters()}
losses = []
for epoch in range(6):
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(inputs), targets)
        loss.backward()
        with torch.no_grad():
            for p, rest in held.items():
                rest.add_(p.grad)
                k = max(1, p.numel() // 20)
                sent = rest.abs() >= rest.abs().flatten().topk(k).values[-1]
                p.grad.copy_(rest * sent)
                rest.mul_(~sent)
        optimizer.step()
        losses.append(loss.item())
