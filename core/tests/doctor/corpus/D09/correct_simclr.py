import mortice as torch
from mortice import nn
from mortice.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(256, 16)
loader = DataLoader(TensorDataset(x), batch_size=32, shuffle=True, drop_last=True)
encoder = nn.Sequential(nn.Linear(16, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 8))
optimizer = torch.optim.Adam(encoder.parameters(), lr=1e-3)


def info_nce(features, temperature=0.5):
    n = features.shape[0] // 2
    labels = torch.cat([torch.arange(n) for _ in range(2)], dim=0)
    labels = (labels.unsqueeze(0) == labels.unsqueeze(1)).float()
    features = nn.functional.normalize(features, dim=1)
    similarity = torch.matmul(features, features.T)
    mask = torch.eye(labels.shape[0], dtype=torch.bool)
    labels = labels[~mask].view(labels.shape[0], -1)
    similarity = similarity[~mask].view(similarity.shape[0], -1)
    positives = similarity[labels.bool()].view(labels.shape[0], -1)
    negatives = similarity[~labels.bool()].view(similarity.shape[0], -1)
    logits = torch.cat([positives, negatives], dim=1) / temperature
    return logits, torch.zeros(logits.shape[0], dtype=torch.long)


losses = []
for epoch in range(3):
    for (batch,) in loader:
        views = torch.cat([batch + 0.1 * torch.randn_like(batch) for _ in range(2)], dim=0)
        logits, labels = info_nce(encoder(views))
        loss = nn.functional.cross_entropy(logits, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
