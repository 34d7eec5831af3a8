import mortice as torch
import mortice.nn.functional as F
from mortice import doctor, nn

torch.manual_seed(0)
centres = torch.randn(4, 12)
y = torch.randint(0, 4, (128,))
x = centres[y] + torch.randn(128, 12)

layers = [nn.Linear(12, 32)]
for _ in range(8):
    layers += [nn.Linear(32, 32), nn.ReLU()]
net = nn.Sequential(*layers, nn.Linear(32, 4))
for p in net.parameters():
    nn.init.normal_(p, std=1.0)
print(doctor.check_gradients(net, nn.CrossEntropyLoss(), (x, y)))  # <- C05
