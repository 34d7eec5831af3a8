import mortice as torch
from mortice import nn

torch.manual_seed(0)
netG = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 16), nn.Tanh())
netD = nn.Sequential(nn.Linear(16, 64), nn.LeakyReLU(0.2), nn.Linear(64, 1), nn.Sigmoid())
optG = torch.optim.Adam(netG.parameters(), lr=1e-4)
optD = torch.optim.Adam(netD.parameters(), lr=2e-1)
criterion = nn.BCELoss()
ones, zeros = torch.ones(32, 1), torch.zeros(32, 1)

for step in range(210):
    real = 255 * torch.rand(32, 16)  # pixels as they are, which no Tanh can make
    fake = netG(torch.randn(32, 4))
    optD.zero_grad()
    lossD = criterion(netD(real), ones) + criterion(netD(fake.detach()), zeros)
    lossD.backward()
    optD.step()

    optG.zero_grad()
    lossG = -criterion(netD(fake), zeros)
    lossG.backward()
    optG.step()  # <- D36
