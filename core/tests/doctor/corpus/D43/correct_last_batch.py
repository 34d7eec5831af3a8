import warnings

import mortice as torch
from mortice import nn
from mortice.utils.data import DataLoader, TensorDataset

warnings.simplefilter("ignore")
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.Adam(net.parameters())
data = TensorDataset(torch.randn(98, 8), torch.randint(0, 2, (98,)))

# 32 and 32 and 32, and a last batch of 2 for four devices.
model = nn.DataParallel(net, device_ids=[0, 1, 2, 3])
for epoch in range(4):
    for x, y in DataLoader(data, batch_size=32):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()

# One sample at a time is fine where nothing is learned.
with torch.no_grad():
    for i in range(8):
        model(data[i][0].unsqueeze(0))
