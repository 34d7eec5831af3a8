import mortice as torch
from mortice import nn
from mortice.optim.swa_utils import SWALR, AveragedModel, update_bn
from mortice.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(320, 8)
y = (x[:, 0] > 0).long()
loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
model = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 2))
averaged = AveragedModel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = SWALR(optimizer, swa_lr=0.05)
losses = []
for epoch in range(4):
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), targets)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    averaged.update_parameters(model)
    scheduler.step()
update_bn(loader, averaged)
update_bn(loader, model)
averaged.eval()
with torch.no_grad():
    right = (averaged(x).argmax(1) == y).float().mean().item()
