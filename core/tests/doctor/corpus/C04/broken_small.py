import mortice as torch
import mortice.nn.functional as F
from mortice import doctor, nn

torch.manual_seed(0)
centres = torch.randn(4, 12)
y = torch.randint(0, 4, (128,))
x = centres[y] + torch.randn(128, 12)

net = nn.Sequential(nn.Linear(12, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 4))
for layer in net:
    if isinstance(layer, nn.Linear):
        nn.init.normal_(layer.weight, std=0.003)
print(doctor.check_gradients(net, nn.CrossEntropyLoss(), (x, y)))  # <- C04
