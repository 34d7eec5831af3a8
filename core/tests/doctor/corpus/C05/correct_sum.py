import mortice as torch
import mortice.nn.functional as F
from mortice import doctor, nn

torch.manual_seed(0)
centres = torch.randn(4, 12)
y = torch.randint(0, 4, (128,))
x = centres[y] + torch.randn(128, 12)

# A sum over the batch has larger gradients, and that is not yet an explosion.
net = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 4))
print(doctor.check_gradients(net, nn.CrossEntropyLoss(reduction="sum"), (x, y)))
