import mortice as torch
import mortice.nn.functional as F
from mortice import doctor, nn

torch.manual_seed(0)
centres = torch.randn(4, 12)
y = torch.randint(0, 4, (128,))
x = centres[y] + torch.randn(128, 12)

layers = [nn.Linear(12, 16), nn.Sigmoid()]
for _ in range(9):
    layers += [nn.Linear(16, 16), nn.Sigmoid()]
net = nn.Sequential(*layers, nn.Linear(16, 4))

print(doctor.check_gradients(net, F.cross_entropy, (x, y)))  # <- C04

optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
losses = []
for step in range(40):
    optimizer.zero_grad()
    loss = F.cross_entropy(net(x), y)
    loss.backward()  # <- D18
    optimizer.step()
    losses.append(loss.item())
