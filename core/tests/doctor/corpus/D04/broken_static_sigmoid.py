# static
import torch
from torch import nn


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(nn.Linear(2, 64), nn.LeakyReLU(0.2), nn.Linear(64, 1))

    def forward(self, x):
        out = self.main(x)
        out = torch.sigmoid(out)
        return out.view(-1)


device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
netD = Discriminator().to(device)
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(netD.parameters())
for real in loader:
    netD.zero_grad()
    loss = criterion(netD(real.to(device)), torch.ones(real.size(0), device=device))  # <- D04
    loss.backward()
    optimizer.step()
