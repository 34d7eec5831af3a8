import mortice as torch
import mortice.nn as nn
from mortice import doctor

torch.manual_seed(0)
x = torch.randn(64, 4)
y = x.sum(1) ** 2  # (64,), and the model gives (64, 1)


def loss_fn(out, target):
    return ((out - target) ** 2).mean()


model = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
print(doctor.overfit_one_batch(model, loss_fn, (x, y), optimizer=optimizer))  # <- D01
