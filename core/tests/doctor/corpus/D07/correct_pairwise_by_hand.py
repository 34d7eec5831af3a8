import mortice as torch
from mortice import nn
from mortice.utils.data import DataLoader, TensorDataset

# Every sample with every other on purpose: a contrastive loss, a ranking loss and a kernel written out.
torch.manual_seed(0)
x = torch.randn(256, 6)
y = x[:, 0] * 2 + 0.1 * torch.randn(256)
loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
losses = []
for epoch in range(4):
    for inputs, targets in loader:
        scores = model(inputs)
        difference = scores - scores.squeeze(1)
        order = torch.sign(targets[:, None] - targets[None, :])
        rank = nn.functional.softplus(-order * difference).mean()
        n = targets.shape[0]
        labels = (targets > 0).long().view(n, 1)
        same = (labels == labels.view(n)).float()
        close = (scores - scores.t()).pow(2)
        contrast = (same * close + (1 - same) * (1 - close).clamp(min=0)).mean()
        kernel = torch.exp(-torch.cdist(scores, scores))
        loss = rank + 0.1 * contrast + 0.0 * kernel.mean() + nn.functional.mse_loss(scores.squeeze(1), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
