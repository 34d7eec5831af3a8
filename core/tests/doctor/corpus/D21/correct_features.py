import mortice as torch
import mortice.nn as nn
import mortice.nn.functional as F

# Two looks at the same samples through dropout, whose features are drawn together: the noise is the point.
torch.manual_seed(0)
encoder = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 16), nn.Dropout(0.1))
teacher = nn.Sequential(nn.Linear(10, 16), nn.Dropout(0.1)).eval()
head = nn.Linear(16, 3)
optimizer = torch.optim.Adam([*encoder.parameters(), *head.parameters()])
for step in range(8):
    x, y = torch.randn(24, 10), torch.randint(0, 3, (24,))
    a, b = encoder(x), encoder(x)
    with torch.no_grad():
        wanted = teacher(x)
    loss = F.mse_loss(a, b) + F.mse_loss(a, wanted) + F.cross_entropy(head(a), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
