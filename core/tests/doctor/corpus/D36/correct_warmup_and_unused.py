import mortice as torch
from mortice import nn

torch.manual_seed(0)
x, y = torch.randn(64, 4), torch.randint(0, 2, (64,))
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.0 if step < 40 else 1.0)
for step in range(90):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    schedule.step()

# The second network waits until the first is good; its optimizer has nothing to do yet.
late = nn.Linear(2, 2)
late_optimizer = torch.optim.SGD(late.parameters(), lr=0.1)
for step in range(30):
    optimizer.zero_grad()
    late_optimizer.zero_grad()
    out = model(x) if step < 15 else late(model(x))
    nn.functional.cross_entropy(out, y).backward()
    optimizer.step()
    late_optimizer.step()
