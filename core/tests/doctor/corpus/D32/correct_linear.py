import mortice as torch
import mortice.nn as nn
from mortice.utils.data import DataLoader, TensorDataset


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Conv2d(3, 4, 3, stride=2, padding=1), nn.ReLU())
        self.decoder = nn.Sequential(nn.ConvTranspose2d(4, 3, 4, stride=2, padding=1), nn.Conv2d(3, 3, 1))

    def forward(self, x):
        return self.decoder(self.encoder(x))


torch.manual_seed(0)
images = torch.randn(40, 3, 12, 12)
loader = DataLoader(TensorDataset(images), batch_size=4)
model = Autoencoder()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for epoch in range(2):
    for (x,) in loader:
        loss = nn.functional.mse_loss(model(x), x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
