import mortice as torch
from mortice import doctor, nn

torch.manual_seed(0)
x = torch.randn(40, 3)
y = torch.sin(x[:, :1]) + 0.1 * torch.randn(40, 1)
model = nn.Sequential(nn.Linear(3, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))
print(doctor.overfit_one_batch(model, nn.MSELoss(), (x, y), steps=300))
