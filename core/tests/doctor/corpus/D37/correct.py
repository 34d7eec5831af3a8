import mortice as torch
from mortice import nn

torch.manual_seed(0)


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))

    def forward(self, z):
        return self.main(z)


netG = Generator()
netD = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
optG = torch.optim.Adam(netG.parameters(), lr=1e-3, betas=(0.5, 0.9))
optD = torch.optim.Adam(netD.parameters(), lr=1e-3, betas=(0.5, 0.9))
criterion = nn.BCEWithLogitsLoss()
ones, zeros = torch.ones(64, 1), torch.zeros(64, 1)
corners = 2.0 * torch.tensor([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])

losses = []
for step in range(200):
    real = corners[torch.randint(0, 4, (64,))] + 0.1 * torch.randn(64, 2)
    fake = netG(torch.randn(64, 4)).detach()
    optD.zero_grad()
    lossD = criterion(netD(real), ones) + criterion(netD(fake), zeros)
    lossD.backward()
    optD.step()

    for _ in range(1):
        optG.zero_grad()
        lossG = criterion(netD(netG(torch.randn(64, 4))), ones)
        lossG.backward()
        optG.step()
    losses.append(lossG.item())
