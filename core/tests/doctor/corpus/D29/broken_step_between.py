# raises: the last SGD.step() was at
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
    output = netD(fake)
    errD = criterion(output, torch.zeros(8, 1))
    errG = criterion(output, torch.ones(8, 1))
    optimizerD.zero_grad()
    errD.backward(retain_graph=True)
    optimizerD.step()
    optimizerG.zero_grad()
    errG.backward()  # <- D29
    optimizerG.step()
