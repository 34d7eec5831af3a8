import mortice as torch
from mortice import nn

torch.manual_seed(0)
model = nn.Linear(8, 2)
optimizer = torch.optim.Adam(model.parameters())
for step in range(12):
    x, y = torch.randn(16, 8), torch.randint(0, 2, (16,))
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.zero_grad()
    optimizer.step()  # <- D36
