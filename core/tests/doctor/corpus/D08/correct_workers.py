import mortice as torch
from mortice import nn
from mortice.utils.data import DataLoader, Dataset, WeightedRandomSampler


class Numbers(Dataset):
    def __init__(self):
        g = torch.Generator().manual_seed(0)
        self.x = torch.randn(96, 6, generator=g)

    def __len__(self):
        return 96

    def __getitem__(self, i):
        return {"x": self.x[i], "y": int(self.x[i, 0] > 0), "id": i}


torch.manual_seed(0)
data = Numbers()
sampler = WeightedRandomSampler([1.0 if i % 3 else 3.0 for i in range(96)], 96)
loader = DataLoader(data, batch_size=16, sampler=sampler, num_workers=1, persistent_workers=True)
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-2)
losses = []
for epoch in range(3):
    for batch in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(batch["x"]), batch["y"])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
