import mortice as torch
from mortice import doctor, nn
from mortice.utils.data import DataLoader, Dataset, TensorDataset

torch.manual_seed(0)

x = torch.randn(256, 4)
y = x @ torch.randn(4, 1)
loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
model = nn.Linear(4, 1)
print(doctor.find_lr(model, torch.optim.Adam(model.parameters()), nn.MSELoss(), loader, steps=80))
