import mortice as torch
from mortice import nn
from mortice.utils.data import DataLoader, TensorDataset

# Two networks side by side: before each pass both are shown the test set in evaluation mode, gradients left on.
torch.manual_seed(0)
x = torch.linspace(-3, 3, 256).unsqueeze(1)
y = x.sin() + 0.1 * torch.randn(256, 1)
loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
test_x = torch.linspace(-3, 3, 50).unsqueeze(1)


def make(norm):
    layers = [nn.Linear(1, 32), nn.BatchNorm1d(32) if norm else nn.Dropout(0.1), nn.Tanh(), nn.Linear(32, 1)]
    return nn.Sequential(*layers)


nets = [make(True), make(False)]
optimizers = [torch.optim.Adam(net.parameters(), lr=0.01) for net in nets]
criterion = nn.MSELoss()
losses = []
for epoch in range(6):
    for net in nets:
        net.eval()
        curve = net(test_x)
        net.train()
    for inputs, targets in loader:
        for net, optimizer in zip(nets, optimizers):
            loss = criterion(net(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        losses.append(loss.item())
