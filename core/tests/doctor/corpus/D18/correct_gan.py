"""A generator's last tanh gives pictures that are nearly all black or white; its discriminator reads them."""

import mortice as torch
import mortice.nn as nn

torch.manual_seed(0)
real = torch.where(torch.rand(64, 36) > 0.5, 1.0, -1.0)
netG = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 36), nn.Tanh())
netG[2].weight.data.mul_(30)
netD = nn.Sequential(nn.Linear(36, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1), nn.Sigmoid())
optimizerD = torch.optim.Adam(netD.parameters(), lr=2e-3)
optimizerG = torch.optim.Adam(netG.parameters(), lr=2e-3)
criterion = nn.BCELoss()

for i in range(110):
    netD.zero_grad()
    lossD_real = criterion(netD(real).view(-1), torch.ones(64))
    lossD_real.backward()
    fake = netG(torch.randn(64, 8))
    lossD_fake = criterion(netD(fake.detach()).view(-1), torch.zeros(64))
    lossD_fake.backward()
    optimizerD.step()

    netG.zero_grad()
    lossG = criterion(netD(fake).view(-1), torch.ones(64))
    lossG.backward()
    optimizerG.step()
