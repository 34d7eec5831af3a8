import mortice as torch
import mortice.nn as nn
from mortice.utils.data import DataLoader, TensorDataset
from mortice.vision import transforms


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Flatten(), nn.Linear(144, 24), nn.ReLU())
        self.decoder = nn.Sequential(nn.Linear(24, 144), nn.Tanh(), nn.Unflatten(1, (1, 12, 12)))

    def forward(self, x):
        return self.decoder(self.encoder(x))


# Stripes of some width and direction, normalised to [-1, 1].
torch.manual_seed(0)
angles = 3.14 * torch.rand(160, 1, 1, 1)
rows, columns = torch.arange(12.0).reshape(12, 1), torch.arange(12.0)
images = 0.5 + 0.5 * torch.sin(rows * torch.cos(angles) + columns * torch.sin(angles))
images = transforms.Normalize((0.5,), (0.5,))(images)
loader = DataLoader(TensorDataset(images), batch_size=16, shuffle=True)

model = Autoencoder()
criterion = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

losses = []
for epoch in range(8):
    for (x,) in loader:
        loss = criterion(model(x), x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
