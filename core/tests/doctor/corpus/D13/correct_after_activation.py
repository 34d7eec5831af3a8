# style
import mortice as torch
import mortice.nn as nn

torch.manual_seed(0)
# BatchNorm of the inputs, and after the activation: both are common and work.
model = nn.Sequential(
    nn.BatchNorm1d(6),
    nn.Linear(6, 16),
    nn.ReLU(),
    nn.BatchNorm1d(16),
    nn.Linear(16, 16),
    nn.ReLU(),
    nn.BatchNorm1d(16),
    nn.Linear(16, 2),
)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(8):
    x, y = 3 + torch.randn(32, 6), torch.randint(0, 2, (32,))
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
