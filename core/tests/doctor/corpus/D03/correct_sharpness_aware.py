import mortice as torch
from mortice import nn
from mortice.utils.data import DataLoader, TensorDataset

# Two gradients for each step (SAM), then plain sign descent without an optimizer.
torch.manual_seed(0)
x = torch.randn(256, 8)
y = (x[:, 0] > 0).long()
loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
losses = []
for epoch in range(3):
    for inputs, targets in loader:
        loss = nn.functional.cross_entropy(model(inputs), targets)
        loss.backward()
        with torch.no_grad():
            norm = torch.stack([p.grad.norm() for p in model.parameters()]).norm()
            moves = [0.05 * p.grad / (norm + 1e-12) for p in model.parameters()]
            for p, move in zip(model.parameters(), moves):
                p.add_(move)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), targets).backward()
        with torch.no_grad():
            for p, move in zip(model.parameters(), moves):
                p.sub_(move)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
for step in range(5):
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    with torch.no_grad():
        for p in model.parameters():
            p -= 0.001 * p.grad.sign()
            p.grad = None
