import mortice as torch
import mortice.nn.functional as F
from mortice import doctor, nn

torch.manual_seed(0)
centres = torch.randn(4, 12)
y = torch.randint(0, 4, (128,))
x = centres[y] + torch.randn(128, 12)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 8))
        self.head = nn.Linear(8, 4)

    def forward(self, x):
        features = self.encoder(x).detach()
        return self.head(features)


net = Net()

print(doctor.check_gradients(net, F.cross_entropy, (x, y)))  # <- C01

optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
losses = []
for step in range(40):
    optimizer.zero_grad()
    loss = F.cross_entropy(net(x), y)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
