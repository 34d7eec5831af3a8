# static
# A generator draws samples in training mode, as DCGAN does: nothing is evaluated.
import torch
from torch import nn

netG = nn.Sequential(nn.Linear(16, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 2))
netD = nn.Sequential(nn.Linear(2, 64), nn.LeakyReLU(0.2), nn.Linear(64, 1))
criterion = nn.BCEWithLogitsLoss()
optimizerD = torch.optim.Adam(netD.parameters(), lr=2e-4)
optimizerG = torch.optim.Adam(netG.parameters(), lr=2e-4)
fixed_noise = torch.randn(64, 16)

for epoch in range(5):
    for real in dataloader:
        netD.zero_grad()
        fake = netG(torch.randn(len(real), 16))
        errD = criterion(netD(real), torch.ones(len(real), 1)) + criterion(netD(fake.detach()), torch.zeros(len(real), 1))
        errD.backward()
        optimizerD.step()
        netG.zero_grad()
        criterion(netD(fake), torch.ones(len(real), 1)).backward()
        optimizerG.step()
    with torch.no_grad():
        samples = netG(fixed_noise).detach().cpu()
