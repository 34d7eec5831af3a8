import mortice as torch
import mortice.nn as nn
import mortice.optim as optim

torch.manual_seed(0)


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))

    def forward(self, z):
        return self.main(z)


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))

    def forward(self, x):
        return self.main(x)


netG, netD = Generator(), Discriminator()
optimizerG = optim.Adam(netG.parameters(), lr=2e-3, betas=(0.5, 0.999))
optimizerD = optim.Adam(netD.parameters(), lr=2e-3, betas=(0.5, 0.999))
criterion = nn.BCEWithLogitsLoss()
real_label, fake_label = torch.ones(64, 1), torch.zeros(64, 1)

losses = []
for step in range(60):
    # Discriminator
    netD.zero_grad()
    angle = 6.2832 * torch.rand(64, 1)
    real = torch.cat([angle.cos(), angle.sin()], dim=1)
    errD_real = criterion(netD(real), real_label)
    errD_real.backward()
    fake = netG(torch.randn(64, 8))
    errD_fake = criterion(netD(fake), fake_label)
    errD_fake.backward()  # <- D30
    optimizerD.step()
    # Generator
    netG.zero_grad()
    netD_fake = netD(netG(torch.randn(64, 8)))
    errG = criterion(netD_fake, real_label)
    errG.backward()
    optimizerG.step()
    losses.append(errG.item())
