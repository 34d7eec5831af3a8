import mortice as torch
from mortice import doctor, nn
from mortice.utils.data import DataLoader, Dataset, TensorDataset

torch.manual_seed(0)

# A high rate that the loss bears.
x = torch.randn(256, 6)
y = (x @ torch.randn(6, 1) > 0).float()
loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True)
model = nn.Linear(6, 1)
print(doctor.find_lr(model, torch.optim.SGD(model.parameters(), lr=0.5), nn.BCEWithLogitsLoss(), loader, end=100.0))
