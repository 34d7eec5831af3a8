import mortice as torch
import mortice.nn.functional as F
from mortice import nn
from mortice.utils.data import DataLoader, TensorDataset

# Some samples are of no class: their rows of the one-hot targets are zero, and they are left out of the loss.
torch.manual_seed(0)
x = torch.randn(320, 10)
y = F.one_hot(x[:, :4].argmax(1), 4).float() * (torch.rand(320, 1) > 0.3)
loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
losses = []
for epoch in range(4):
    for inputs, targets in loader:
        known = targets.sum(1, keepdim=True)
        p = F.softmax(model(inputs), dim=1)
        brier = (F.mse_loss(p, targets, reduction="none") * known).sum() / known.sum()
        loss = brier + (F.binary_cross_entropy(p, targets, reduction="none") * known).sum() / known.sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
