import mortice as torch
import mortice.nn.functional as F
from mortice import doctor, nn

torch.manual_seed(0)
centres = torch.randn(4, 12)
y = torch.randint(0, 4, (128,))
x = centres[y] + torch.randn(128, 12)

net = nn.Sequential(nn.Linear(12, 32), nn.Tanh(), nn.Linear(32, 4))
for p in net.parameters():
    nn.init.zeros_(p)
print(doctor.check_gradients(net, nn.CrossEntropyLoss(), (x, y)))  # <- C02
