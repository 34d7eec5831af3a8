import mortice as torch
from mortice import doctor, nn
from mortice.utils.data import DataLoader, Dataset, TensorDataset

torch.manual_seed(0)

x = 5 * torch.randn(256, 6)
y = x @ torch.randn(6, 1)
loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
model = nn.Linear(6, 1)
print(doctor.find_lr(model, torch.optim.SGD(model.parameters(), lr=1.0), nn.MSELoss(), loader))  # <- C32
