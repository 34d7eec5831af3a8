import mortice as torch
from mortice import nn

torch.manual_seed(0)
G = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
D = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
opt_g, opt_d = torch.optim.Adam(G.parameters(), lr=1e-3), torch.optim.Adam(D.parameters(), lr=1e-3)
bce = nn.BCEWithLogitsLoss()
ones, zeros = torch.ones(32, 1), torch.zeros(32, 1)

for step in range(25):
    # The generator's backward leaves gradients in D too; D.zero_grad() takes them away.
    D.zero_grad()
    real = torch.randn(32, 2) + 2
    bce(D(real), ones).backward()
    fake = G(torch.randn(32, 4))
    bce(D(fake.detach()), zeros).backward()
    opt_d.step()

    G.zero_grad()
    bce(D(fake), ones).backward()
    opt_g.step()
