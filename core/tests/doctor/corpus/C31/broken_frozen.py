import mortice as torch
from mortice import doctor, nn
from mortice.utils.data import DataLoader, Dataset, TensorDataset

torch.manual_seed(0)

x, y = torch.randn(128, 6), torch.randint(0, 2, (128,))
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.SGD([torch.zeros(3, requires_grad=True)], lr=0.1)  # not the model's
loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)
print(doctor.find_lr(model, optimizer, nn.CrossEntropyLoss(), loader))  # <- C31
