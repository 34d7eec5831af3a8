import itertools

import mortice as torch
from mortice import nn

# CycleGAN in small: two generators with one optimizer, two critics with one each, a cycle loss.
torch.manual_seed(0)
A = torch.randn(256, 3) + 2
B = torch.randn(256, 3) * 0.5 - 1


def net(out):
    return nn.Sequential(nn.Linear(3, 16), nn.LeakyReLU(0.2), nn.Linear(16, out))


G_AB, G_BA, D_A, D_B = net(3), net(3), net(1), net(1)
mse, l1 = nn.MSELoss(), nn.L1Loss()
opt_G = torch.optim.Adam(itertools.chain(G_AB.parameters(), G_BA.parameters()), lr=2e-3, betas=(0.5, 0.999))
opt_DA = torch.optim.Adam(D_A.parameters(), lr=2e-3, betas=(0.5, 0.999))
opt_DB = torch.optim.Adam(D_B.parameters(), lr=2e-3, betas=(0.5, 0.999))
valid, fake = torch.ones(16, 1), torch.zeros(16, 1)
losses = []
for step in range(40):
    a, b = A[torch.randint(0, 256, (16,))], B[torch.randint(0, 256, (16,))]
    opt_G.zero_grad()
    fake_b, fake_a = G_AB(a), G_BA(b)
    loss = mse(D_B(fake_b), valid) + mse(D_A(fake_a), valid)
    loss = loss + 10 * (l1(G_BA(fake_b), a) + l1(G_AB(fake_a), b)) + 5 * (l1(G_BA(a), a) + l1(G_AB(b), b))
    loss.backward()
    opt_G.step()
    for critic, optimizer, real, made in ((D_A, opt_DA, a, fake_a), (D_B, opt_DB, b, fake_b)):
        optimizer.zero_grad()
        d_loss = (mse(critic(real), valid) + mse(critic(made.detach()), fake)) / 2
        d_loss.backward()
        optimizer.step()
    losses.append(loss.item())
