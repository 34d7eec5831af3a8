import mortice as torch
from mortice import doctor, nn
from mortice.utils.data import DataLoader, Dataset, TensorDataset

torch.manual_seed(0)

x, y = torch.randn(256, 6), torch.randn(256, 1)
y = y + x[:, :1]
loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD([{"params": model[0].parameters(), "lr": 0.001}, {"params": model[2].parameters()}], lr=0.01)
print(doctor.find_lr(model, optimizer, nn.MSELoss(), loader))
