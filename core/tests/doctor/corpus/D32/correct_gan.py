import mortice as torch
import mortice.nn as nn
from mortice.utils.data import DataLoader, TensorDataset
from mortice.vision import transforms

torch.manual_seed(0)
images = torch.rand(96, 1, 8, 8)
loader = DataLoader(TensorDataset(transforms.Normalize((0.5,), (0.5,))(images)), batch_size=8, shuffle=True)

netG = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 64), nn.Tanh(), nn.Unflatten(1, (1, 8, 8)))
netD = nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
criterion = nn.BCEWithLogitsLoss()
optimizerD = torch.optim.Adam(netD.parameters(), lr=2e-3, betas=(0.5, 0.999))
optimizerG = torch.optim.Adam(netG.parameters(), lr=2e-3, betas=(0.5, 0.999))
ones, zeros = torch.ones(8, 1), torch.zeros(8, 1)

losses = []
for epoch in range(3):
    for (real,) in loader:
        optimizerD.zero_grad()
        fake = netG(torch.randn(8, 10))
        lossD = criterion(netD(real), ones) + criterion(netD(fake.detach()), zeros)
        lossD.backward()
        optimizerD.step()

        optimizerG.zero_grad()
        lossG = criterion(netD(fake), ones)
        lossG.backward()
        optimizerG.step()
        losses.append(lossD.item())
