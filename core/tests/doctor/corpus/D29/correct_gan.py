import mortice as torch
import mortice.nn as nn

torch.manual_seed(0)
netD = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
netG = nn.Linear(4, 2)
optimizerD = torch.optim.SGD(netD.parameters(), lr=0.01)
optimizerG = torch.optim.SGD(netG.parameters(), lr=0.01)
criterion = nn.BCEWithLogitsLoss()

for i in range(10):
    fake = netG(torch.randn(8, 4))
    netD.zero_grad()
    errD = criterion(netD(fake.detach()), torch.zeros(8, 1)) + criterion(netD(torch.randn(8, 2)), torch.ones(8, 1))
    errD.backward()
    optimizerD.step()
    netG.zero_grad()
    errG = criterion(netD(fake), torch.ones(8, 1))
    errG.backward()
    optimizerG.step()
