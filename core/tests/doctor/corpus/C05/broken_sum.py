import mortice as torch
from mortice import doctor, nn

torch.manual_seed(0)
pixels = 255 * torch.rand(64, 1, 8, 8)
auto = nn.Sequential(nn.Flatten(), nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 64), nn.Unflatten(1, (1, 8, 8)))
print(doctor.check_gradients(auto, nn.MSELoss(reduction="sum"), pixels))  # <- C05
