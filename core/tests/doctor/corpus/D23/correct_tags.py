import mortice as torch
from mortice import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
for name, p in model.named_parameters():
    p.tag = name
    p.is_head = name.startswith("2")
    p.graded = True
groups = [
    {"params": [p for p in model.parameters() if p.is_head], "lr": 0.1},
    {"params": [p for p in model.parameters() if not p.is_head], "lr": 0.01},
]
optimizer = torch.optim.SGD(groups)
x, y = torch.randn(32, 4), torch.randn(32, 1)
for _ in range(6):
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()
