import mortice as torch
import mortice.nn.functional as F
from mortice import doctor, nn

torch.manual_seed(0)
x, y = torch.randn(64, 12), torch.randint(0, 4, (64,))
model = nn.Sequential(nn.Linear(12, 64), nn.ReLU(), nn.Linear(64, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-5)
print(doctor.overfit_one_batch(model, F.cross_entropy, (x, y), steps=50, optimizer=optimizer))  # <- D01
