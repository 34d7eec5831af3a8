import mortice as torch
import mortice.nn.functional as F
from mortice import nn
from mortice.utils.data import DataLoader, TensorDataset

# Dropout is the augmentation: two passes of one batch are to be alike, and a sample unlike the others.
torch.manual_seed(0)
x = torch.randn(256, 12)
loader = DataLoader(TensorDataset(x), batch_size=32, shuffle=True)
encoder = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 16), nn.Dropout(0.1))
predictor = nn.Linear(16, 16)
optimizer = torch.optim.Adam([*encoder.parameters(), *predictor.parameters()], lr=1e-3)
losses = []
for epoch in range(3):
    for (batch,) in loader:
        a, b = encoder(batch), encoder(batch)
        logits = F.cosine_similarity(a.unsqueeze(1), b.unsqueeze(0), dim=2) / 0.05
        loss = F.cross_entropy(logits, torch.arange(len(batch))) + F.mse_loss(predictor(a), b.detach())
        loss = loss + F.mse_loss(a, b)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
