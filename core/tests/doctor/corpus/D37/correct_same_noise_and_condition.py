import mortice as torch
from mortice import nn

torch.manual_seed(0)


class Generator(nn.Module):
    """Of one class each batch: the samples of a batch may well be alike."""

    def __init__(self):
        super().__init__()
        self.classes = nn.Embedding(4, 2)
        self.main = nn.Linear(4, 2)

    def forward(self, z, label):
        return 3 * self.classes(label) + 0.01 * self.main(z)


G = Generator()
D = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
g_opt, d_opt = torch.optim.Adam(G.parameters(), lr=1e-3), torch.optim.Adam(D.parameters(), lr=1e-3)
corners = 2.0 * torch.tensor([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
bce = nn.BCEWithLogitsLoss()
ones, zeros = torch.ones(32, 1), torch.zeros(32, 1)
for step in range(160):
    real = corners[torch.randint(0, 4, (32,))] + 0.1 * torch.randn(32, 2)
    label = torch.full((32,), step % 4)
    fake = G(torch.randn(32, 4), label)
    d_opt.zero_grad()
    (bce(D(real), ones) + bce(D(fake.detach()), zeros)).backward()
    d_opt.step()
    g_opt.zero_grad()
    bce(D(fake), ones).backward()
    g_opt.step()
