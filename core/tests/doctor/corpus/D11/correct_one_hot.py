import mortice as torch
import mortice.nn as nn
import mortice.nn.functional as F

# One label a sample, written as one-hot rows: softmax is right, whichever loss compares them.
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 4), nn.Softmax(dim=1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for step in range(10):
    x = torch.randn(32, 8)
    y = F.one_hot(x[:, :4].argmax(1), 4).float()
    p = model(x)
    loss = F.binary_cross_entropy(p, y) + F.mse_loss(p, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
