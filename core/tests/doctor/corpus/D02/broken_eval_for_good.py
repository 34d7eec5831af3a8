import mortice as torch
from mortice import nn

torch.manual_seed(0)
x = torch.randn(200, 12)
y = (x[:, :1] * x[:, 1:2] > 0).float()

net = nn.Sequential(nn.Linear(12, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, 1))
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(net.parameters())


def accuracy():
    net.eval()
    with torch.no_grad():
        return ((net(x[160:]) > 0) == (y[160:] > 0)).float().mean().item()


for epoch in range(4):
    for start in range(0, 160, 40):
        optimizer.zero_grad()
        output = net(x[start : start + 40])  # <- D02
        criterion(output, y[start : start + 40]).backward()
        optimizer.step()
    print(epoch, accuracy())
